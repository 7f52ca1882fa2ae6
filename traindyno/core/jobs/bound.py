"""How slow a run is at least that a shared job ended because it could not win."""

from collections.abc import Mapping
from dataclasses import dataclass

from traindyno.core.jobs.json_text import number_of, text_of, whole_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Both figures are as small as the spread of the steps allows."""

    #: The run of the same job that was ahead.
    by: str
    #: The run's time for the whole workload, its start included, ÷ that run's.
    least_ratio: float
    least_seconds_per_sample: float
    #: How many of its steps were compared.
    steps: int

    @property
    def text(self) -> str:
        return f"at least {(self.least_ratio - 1) * 100:.0f} % slower"


def read_bound(value: object) -> Bound | None:
    """As the job's parent wrote it; None if it is damaged or absent."""
    if not isinstance(value, Mapping):
        return None
    by, steps = text_of(value.get("by")), whole_of(value.get("steps"))
    ratio, seconds = (number_of(value.get(name)) for name in ("least_ratio", "least_seconds_per_sample"))
    if not by or ratio is None or ratio <= 0 or seconds is None or steps is None:
        return None
    return Bound(by=by, least_ratio=ratio, least_seconds_per_sample=seconds, steps=steps)
