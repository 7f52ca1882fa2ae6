"""Which batch a run was measured with that its shared job searched, and what the probes showed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traindyno.core.jobs.json_text import number_of, whole_of

#: Instead of a batch that was found.
NONE_FITS = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProbe:
    """A few steps with one batch per device. ``fits``: False if the memory was too small for them."""

    batch: int
    fits: bool
    #: Of the process that needed the most; None if unknown.
    peak_bytes: int | None = None
    #: Of all processes; None if it did not fit, or if it is unknown.
    samples_per_second: float | None = None
    #: Of the CUDA allocator; with one, the batch does not fit a long run.
    retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFinding:
    """The run was given ``batch``. ``probes``: in their order."""

    batch: int
    probes: tuple[BatchProbe, ...]

    @property
    def fits(self) -> bool | None:
        """Whether ``batch`` fits; False if no batch does. None if no probe told."""
        return next((probe.fits for probe in self.probes if probe.batch == self.batch), None)


def read_batch_finding(value: object) -> BatchFinding | None:
    """As the job's parent wrote it; None if it is damaged or absent."""
    if not isinstance(value, Mapping):
        return None
    batch, probes = whole_of(value.get("batch")), value.get("probes")
    if batch is None or batch < 1 or not isinstance(probes, Sequence):
        return None
    read = [_probe(each) for each in probes]
    known = tuple(each for each in read if each is not None)
    return BatchFinding(batch=batch, probes=known) if len(known) == len(read) else None


def _probe(value: object) -> BatchProbe | None:
    if not isinstance(value, Mapping):
        return None
    batch, fits = whole_of(value.get("batch")), value.get("fits")
    if batch is None or not isinstance(fits, bool):
        return None
    return BatchProbe(
        batch=batch,
        fits=fits,
        peak_bytes=whole_of(value.get("peak_bytes")),
        samples_per_second=number_of(value.get("samples_per_second")),
        retries=whole_of(value.get("retries")) or 0,
    )
