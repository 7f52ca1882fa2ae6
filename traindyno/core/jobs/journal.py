"""Reads what the parents of a shared job wrote: their journals, and how each run ended.

Damaged files never raise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from traindyno.core.jobs import journal_format
from traindyno.core.jobs.journal_format import read_object
from traindyno.core.jobs.run_end import HostEnd, RunEnd, agree, number_of, read_host_end, text_of

_MILLISECONDS = 1000
_DEPTH = 3  # of journals, as <journal>/<job name>/<host>.jsonl
_END_DEPTH = 4  # of ends, as <run id>/<ended>/<job name>/<host>.json


@dataclass(frozen=True, slots=True, kw_only=True)
class JobJournal:
    """What the journals of a shared job say. Times are of the host whose journal tells most.

    None is unknown, or has not happened.
    """

    job_name: str
    #: Runs in the order in which they began, also if the job's end or an interruption cut them off.
    began: tuple[str, ...] = ()
    #: Runs for which the job worked before they began: a probe of their batch.
    probed: frozenset[str] = frozenset()
    #: Whether a run, a probe or the throw-away run before the first one began.
    has_worked: bool = False
    #: Run → how it ended in this job: on every host, with all its files.
    ends: Mapping[str, RunEnd] = field(default_factory=dict)
    #: Run → why it was left for the next attempt.
    left: Mapping[str, str] = field(default_factory=dict)
    #: Run → seconds from its begin until it ended or was left, in the last session.
    spent_seconds: Mapping[str, float] = field(default_factory=dict)
    #: How often another parent started in the same job, as on spot.
    restarts: int = 0
    #: The run in progress when a parent died and another one started; no run may have been.
    interrupted: tuple[str, ...] = ()
    #: Epoch seconds of the first parent's first line.
    started_at: float | None = None
    #: Seconds from that line to the begin of the first run.
    start_seconds: float | None = None
    #: The part of ``start_seconds`` that throw-away runs and probes took.
    warm_up_seconds: float = 0.0
    #: Seconds of throw-away runs that are neither in it nor in ``runs_seconds``, as after an
    #: interruption.
    thrown_away_seconds: float = 0.0
    #: Seconds from the begin of the first run to the end of the last one, if one parent saw all.
    runs_seconds: float | None = None
    #: Seconds from the end of the last run to the last parent's last line.
    end_seconds: float | None = None


@dataclass(slots=True)
class _Session:
    """One life of the parent: a spot job may have several. Seconds are since its first line."""

    started_at: float | None = None
    closed_seconds: float | None = None
    #: Seconds of throw-away runs and probes, before and after the first run began.
    warm_up_seconds: float = 0.0
    probes_between_seconds: float = 0.0
    has_warmed_up: bool = False
    probed: set[str] = field(default_factory=set)
    began: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    left: dict[str, tuple[str, float]] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)

    @property
    def over(self) -> dict[str, float]:
        """Runs that began and ended, or that were left after they began → when."""
        left = {run_id: at for run_id, (_, at) in self.left.items()}
        return {run_id: at for run_id, at in {**left, **self.ended}.items() if run_id in self.began}


def read_host_journal(job_name: str, contents: bytes) -> JobJournal:
    """Read the journal of one host. Lines that can't be read are left out."""
    sessions = [_Session()]
    for text in contents.splitlines():
        line = read_object(text)
        elapsed = None if line is None else number_of(line.get("elapsed_milliseconds"))
        if line is None or elapsed is None:
            continue
        if line.get("event") == journal_format.PARENT_STARTED and sessions[-1] != _Session():
            sessions.append(_Session())
        _note(sessions[-1], line, max(0.0, elapsed / _MILLISECONDS))
    return _tell(job_name, sessions)


def _note(session: _Session, line: dict[str, object], seconds: float) -> None:
    """The first line of a kind counts, as in a file that was written twice."""
    event = line.get("event")
    run_id = text_of(line.get("run_id"))
    if event == journal_format.PARENT_STARTED:
        session.started_at = number_of(line.get("time"))
    elif event == journal_format.PARENT_ENDED:
        session.closed_seconds = seconds
    elif event == journal_format.WARM_UP_BEGAN:
        session.has_warmed_up = True
    elif event in (journal_format.WARMED_UP, journal_format.PROBED):
        own = max(0.0, (number_of(line.get("own_milliseconds")) or 0.0) / _MILLISECONDS)
        if session.began:
            session.probes_between_seconds += own
        else:
            session.warm_up_seconds += own
    elif run_id is not None:
        match event:
            case journal_format.PROBE_BEGAN:
                session.probed.add(run_id)
            case journal_format.RUN_BEGAN:
                session.began.setdefault(run_id, seconds)
            case journal_format.RUN_ENDED:
                session.ended.setdefault(run_id, seconds)
            case journal_format.RUN_SKIPPED:
                session.skipped.add(run_id)
            case journal_format.RUN_LEFT:
                session.left.setdefault(run_id, (text_of(line.get("reason")) or "", seconds))


def _tell(job_name: str, sessions: Sequence[_Session]) -> JobJournal:
    first = sessions[0]
    last = sessions[-1]
    over = last.over
    closed = last.closed_seconds
    begin = min(first.began.values(), default=None)
    end = max(over.values(), default=None)
    is_whole = (
        len(sessions) == 1
        and begin is not None
        and end is not None
        and len(over) == len(first.began)
    )
    warm_up = 0.0 if begin is None else min(first.warm_up_seconds, begin)
    thrown_away = (
        sum(session.warm_up_seconds + session.probes_between_seconds for session in sessions)
        - warm_up
    )
    return JobJournal(
        job_name=job_name,
        began=tuple(dict.fromkeys(run_id for session in sessions for run_id in session.began)),
        probed=frozenset[str]().union(*(session.probed for session in sessions)),
        has_worked=any(
            session.began or session.probed or session.has_warmed_up for session in sessions
        ),
        left={run_id: reason for run_id, (reason, _) in last.left.items()},
        spent_seconds={run_id: max(0.0, at - last.began[run_id]) for run_id, at in over.items()},
        restarts=len(sessions) - 1,
        interrupted=tuple(_interrupted(sessions)),
        started_at=first.started_at,
        start_seconds=begin,
        warm_up_seconds=warm_up,
        thrown_away_seconds=0.0 if is_whole else thrown_away,
        runs_seconds=max(0.0, end - begin)
        if is_whole and begin is not None and end is not None
        else None,
        end_seconds=None if closed is None or end is None else max(0.0, closed - end),
    )


def _interrupted(sessions: Sequence[_Session]) -> Iterator[str]:
    """A run that a later session skips had ended, though the journal lost the line."""
    for number, session in enumerate(sessions[:-1], start=1):
        for run_id in session.began:
            if run_id not in session.ended and not any(
                run_id in later.skipped for later in sessions[number:]
            ):
                yield run_id


def merge_journals(job_name: str, hosts: Sequence[JobJournal]) -> JobJournal:
    """The host that saw most runs begin tells order and times; runs that only others know come
    after.
    """
    if not hosts:
        return JobJournal(job_name=job_name)
    fullest = max(hosts, key=lambda host: (len(host.began), host.end_seconds is not None))
    return replace(
        fullest,
        began=tuple(dict.fromkeys(run_id for host in (fullest, *hosts) for run_id in host.began)),
        probed=frozenset[str]().union(*(host.probed for host in hosts)),
        has_worked=any(host.has_worked for host in hosts),
        left={run_id: reason for host in (*hosts, fullest) for run_id, reason in host.left.items()},
    )


def read_job_journal(
    files: Mapping[str, bytes],
    *,
    job_name: str,
    host_count: int,
    sizes: Mapping[str, int] | None = None,
) -> JobJournal:
    """Read the journal of a job. Keys of other jobs and unknown names are ignored.

    Args:
        files: Contents by key, relative to the job's checkpoint prefix: at least its journals and
            ends.
        job_name: Name of the job.
        host_count: Number of its hosts.
        sizes: Bytes of keys whose contents were not read.
    """
    hosts = [
        read_host_journal(job_name, files[key])
        for key, (folder, job, name) in _parts(files, _DEPTH)
        if folder == journal_format.JOURNAL and job == job_name and name.endswith(".jsonl")
    ]
    ends = _ends(files, sizes or {}, host_count=host_count, job_name=job_name)
    return replace(
        merge_journals(job_name, hosts), ends={run_id: end for (run_id, _), end in ends.items()}
    )


def ended_runs(
    files: Mapping[str, bytes], *, host_count: int, sizes: Mapping[str, int] | None = None
) -> frozenset[str]:
    """Runs that ended in any attempt: each host's end is there, and its files have the bytes that
    it says.

    Checksums are compared where the contents are given; else the bytes in ``sizes`` have to agree.
    """
    return frozenset(run_id for run_id, _ in _ends(files, sizes or {}, host_count=host_count))


def _ends(
    files: Mapping[str, bytes],
    sizes: Mapping[str, int],
    *,
    host_count: int,
    job_name: str | None = None,
) -> dict[tuple[str, str], RunEnd]:
    """The end on all hosts of each run and job. Without ``job_name``, ends of all jobs."""
    hosts: dict[tuple[str, str], list[HostEnd]] = {}
    for key, (run_id, folder, job, name) in _parts(files, _END_DEPTH):
        if folder == journal_format.ENDED and job_name in (None, job) and name.endswith(".json"):
            end = read_host_end(key, files, sizes)
            if end is not None:
                hosts.setdefault((run_id, job), []).append(end)
    agreed = {
        key: agree(ends_of_run, host_count=host_count) for key, ends_of_run in sorted(hosts.items())
    }
    return {key: end for key, end in agreed.items() if end is not None}


def _parts(files: Mapping[str, bytes], depth: int) -> Iterator[tuple[str, list[str]]]:
    """Keys with this number of names, in order."""
    for key in sorted(files):
        names = key.split("/")
        if len(names) == depth and all(names):
            yield key, names
