"""Which wait for data the verdict names: that of the probes, or that of the log where the probes can't tell."""

import pytest

from traindyno.core.measurement.step_parts import PartSeconds, StepParts
from traindyno.core.slowness.slowness_text import describe_parts


def described(*, data: tuple[float, float], waiting: tuple[float, float]) -> str:
    """Means and standard errors, as shares of a step of one second."""
    parts = StepParts(
        samples_per_step=8,
        step=PartSeconds(mean=1.0, error=0.01),
        waiting=PartSeconds(mean=waiting[0], error=waiting[1]),
        data=PartSeconds(mean=data[0], error=data[1]),
        is_probed=True,
    )
    return " ".join(describe_parts("A", parts, None))


@pytest.mark.parametrize(
    ("data", "waiting", "expected"),
    [
        ((0.45, 0.04), (0.29, 0.02), "45 % (± 8 %) of a step of A waits for data."),
        ((0.10, 0.20), (0.29, 0.02), "29 % (± 4 %) of a step of A waits for data."),  # noisy probes
        ((0.01, 0.02), (0.29, 0.02), ""),  # the host waits, the device does not
        ((0.10, 0.20), (0.02, 0.005), ""),
        ((0.10, 0.20), (0.29, 0.20), ""),
    ],
)
def test_noisy_probes_do_not_hide_the_logs_wait(
    data: tuple[float, float], waiting: tuple[float, float], expected: str
) -> None:
    text = described(data=data, waiting=waiting)
    assert text.startswith(expected or "Of a step of A, ")
    assert ("waits for data" in text) == bool(expected)
