"""How a run of a shared job ended, from the file that each host wrote last."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from traindyno.core.jobs.journal_format import FORMAT_VERSION, read_object
from traindyno.core.search.largest_batch import Probe

#: Stands for the found batch where none fits.
NONE_FITS = 0


def number_of(value: object) -> float | None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def whole_of(value: object) -> int | None:
    number = number_of(value)
    return int(number) if number is not None and number.is_integer() else None


def text_of(value: object) -> str | None:
    """Text that can be stored: UTF-8 has no lone surrogates."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutpacedBound:
    """What is known of a run that was outpaced."""

    #: The run of the same job that was ahead.
    by: str
    #: The run's time for the whole workload ÷ that run's, as small as the scatter of steps and of
    #: runs allows.
    least_ratio: float
    #: How many of its steps were compared.
    steps: int

    @property
    def text(self) -> str:
        return f"at least {(self.least_ratio - 1) * 100:.0f} % slower"


def read_bound(value: object) -> OutpacedBound | None:
    """Read the bound as the job's parent wrote it; None if it is damaged or absent."""
    if not isinstance(value, Mapping):
        return None
    by = text_of(value.get("by"))
    steps = whole_of(value.get("steps"))
    ratio = number_of(value.get("least_ratio"))
    if not by or ratio is None or ratio <= 0 or steps is None:
        return None
    return OutpacedBound(by=by, least_ratio=ratio, steps=steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFinding:
    """The run was given ``batch``. ``probes``: in their order."""

    batch: int
    probes: tuple[Probe, ...]

    @property
    def fits(self) -> bool | None:
        """Whether ``batch`` fits; False if no batch does. None if no probe told."""
        return next((probe.fits for probe in self.probes if probe.batch == self.batch), None)


def read_batch_finding(value: object) -> BatchFinding | None:
    """Read the result of a batch search as the job's parent wrote it; None if it is damaged or
    absent.
    """
    if not isinstance(value, Mapping):
        return None
    batch = whole_of(value.get("batch"))
    probes = value.get("probes")
    if batch is None or batch < 1 or not isinstance(probes, Sequence):
        return None
    read = [_probe(probe) for probe in probes]
    known = tuple(probe for probe in read if probe is not None)
    return BatchFinding(batch=batch, probes=known) if len(known) == len(read) else None


def _probe(value: object) -> Probe | None:
    if not isinstance(value, Mapping):
        return None
    batch = whole_of(value.get("batch"))
    fits = value.get("fits")
    if batch is None or not isinstance(fits, bool):
        return None
    return Probe(
        batch=batch,
        fits=fits,
        peak_bytes=whole_of(value.get("peak_bytes")),
        samples_per_second=number_of(value.get("samples_per_second")),
        retries=whole_of(value.get("retries")) or 0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """End of a run. Times are epoch seconds, by the clock of the host that failed or ended
    first.
    """

    #: One of ``journal_format.REASONS``, or what a later version of the parent writes.
    reason: str
    #: Exit code of the process that gave the reason; None without one, or if a signal ended it.
    exit_code: int | None = None
    #: Signal that ended the process.
    signal: int | None = None
    #: The run's failure file, or the last lines of its output.
    failure: str | None = None
    #: Processes that the kernel killed for memory while it ran, on all hosts.
    oom_kills: int = 0
    ended_at: float
    #: Seconds from the barrier at which the run began to the end of its clean-up.
    own_seconds: float
    #: Place among the runs that began in the job, from 1; 0 if it did not begin.
    place: int
    #: Host on which it failed, or the first one.
    host: str | None = None
    #: Bound by which the run was outpaced, if it was.
    bound: OutpacedBound | None = None
    #: Result of the search for its batch, if there was one.
    batch: BatchFinding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnd:
    """End of a run as one host wrote it.

    ``hosts`` are all hosts, each of which writes its own. ``is_failed`` says whether the run failed
    on this one.
    """

    host: str
    hosts: frozenset[str]
    is_failed: bool
    end: RunEnd


def read_host_end(key: str, files: Mapping[str, bytes], sizes: Mapping[str, int]) -> HostEnd | None:
    """Read the end that one host wrote; None if the file is damaged, or if a file that it names is
    missing or differs.
    """
    document = read_object(files[key])
    end = None if document is None else _host_end_of(document, key)
    if document is None or end is None:
        return None
    return (
        end
        if all(_agrees(name, said, files, sizes) for name, said in document["files"].items())
        else None
    )


def agree(ends: Sequence[HostEnd], *, host_count: int) -> RunEnd | None:
    """The one end of a run by its ends on all hosts; None if one is missing.

    The host on which the run failed decides.
    """
    hosts = {end.host for end in ends}
    if len(hosts) != host_count or any(end.hosts != hosts for end in ends):
        return None
    first = min(
        ends, key=lambda end: (not end.is_failed, end.end.failure is None, end.end.ended_at)
    )
    shown = first.host if first.is_failed else min(hosts, key=lambda host: (len(host), host))
    return replace(
        first.end,
        host=shown,
        own_seconds=max(end.end.own_seconds for end in ends),
        oom_kills=sum(end.end.oom_kills for end in ends),
    )


def _host_end_of(document: Mapping[str, Any], key: str) -> HostEnd | None:
    """The end in a document; None if it lacks what every end has, or if it is of another run or
    version.
    """
    run_id, _, job_name, _ = key.split("/")
    if (document.get("version"), document.get("run_id"), document.get("job_name")) != (
        FORMAT_VERSION,
        run_id,
        job_name,
    ):
        return None
    reason = text_of(document.get("reason"))
    host, files, hosts = (document.get(name) for name in ("host", "files", "hosts"))
    ended_at = number_of(document.get("ended_at"))
    own = number_of(document.get("own_milliseconds"))
    names = [name for name in hosts if isinstance(name, str)] if isinstance(hosts, list) else []
    if reason is None or not (isinstance(host, str) and isinstance(files, dict)):
        return None
    if ended_at is None or own is None:
        return None
    end = RunEnd(
        reason=reason,
        exit_code=whole_of(document.get("exit_code")),
        signal=whole_of(document.get("signal")),
        failure=text_of(document.get("failure")) or None,
        oom_kills=_count(document.get("oom_kills")),
        ended_at=ended_at,
        own_seconds=max(0.0, own / 1000),
        place=_count(document.get("place")),
        bound=read_bound(document.get("bound")),
        batch=read_batch_finding(document.get("batch")),
    )
    return HostEnd(
        host=host, hosts=frozenset(names), is_failed=document.get("failed_host") == host, end=end
    )


def _count(value: object) -> int:
    return max(0, whole_of(value) or 0)


def _agrees(key: str, said: object, files: Mapping[str, bytes], sizes: Mapping[str, int]) -> bool:
    """Whether the file has the bytes, and the checksum if its contents were read."""
    if not isinstance(said, dict):
        return False
    contents = files.get(key)
    size = sizes.get(key) if contents is None else len(contents)
    if size is None or size != whole_of(said.get("bytes")):
        return False
    return contents is None or hashlib.sha256(contents).hexdigest() == said.get("sha256")
