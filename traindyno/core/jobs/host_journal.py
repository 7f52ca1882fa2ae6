"""The journal of a shared job's parent on one host: what it did, a line each, in one or several sessions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from traindyno.core.jobs import journal_format
from traindyno.core.jobs.job_journal import JobJournal
from traindyno.core.jobs.json_text import number_of, read_object, text_of

_MILLISECONDS = 1000


@dataclass(slots=True)
class _Session:
    """One life of the parent: a spot job may have several. Seconds are since its first line."""

    started_at: float | None = None
    closed_seconds: float | None = None
    #: Of throw-away runs and probes, before and after the first run began.
    warm_up_seconds: float = 0.0
    probes_between_seconds: float = 0.0
    began: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    left: dict[str, tuple[str, float]] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)

    @property
    def over(self) -> dict[str, float]:
        """Runs that began and ended, or that were left after they began → when."""
        left = {run_id: at for run_id, (_, at) in self.left.items()}
        return {run_id: at for run_id, at in {**left, **self.ended}.items() if run_id in self.began}


def read_host_journal(job_name: str, key: str, contents: bytes, problems: list[str]) -> JobJournal:
    """Lines that can't be read are left out; ``problems`` gets their number."""
    sessions = [_Session()]
    damaged = 0
    for text in contents.splitlines():
        line = read_object(text)
        elapsed = None if line is None else number_of(line.get("elapsed_milliseconds"))
        if line is None or elapsed is None:
            damaged += bool(text.strip())
            continue
        if line.get("event") == journal_format.PARENT_STARTED and sessions[-1] != _Session():
            sessions.append(_Session())
        _note(sessions[-1], line, max(0.0, elapsed / _MILLISECONDS))
    if damaged:
        problems.append(f"{key}: {damaged} of its lines can't be read")
    return _tell(job_name, sessions)


def _note(session: _Session, line: dict[str, object], seconds: float) -> None:
    """The first line of a kind counts, as in a file that was written twice."""
    event, run_id = line.get("event"), text_of(line.get("run_id"))
    if event == journal_format.PARENT_STARTED:
        session.started_at = number_of(line.get("time"))
    elif event == journal_format.PARENT_ENDED:
        session.closed_seconds = seconds
    elif event in (journal_format.WARMED_UP, journal_format.PROBED):
        own = max(0.0, (number_of(line.get("own_milliseconds")) or 0.0) / _MILLISECONDS)
        if session.began:
            session.probes_between_seconds += own
        else:
            session.warm_up_seconds += own
    elif run_id is not None:
        match event:
            case journal_format.RUN_BEGAN:
                session.began.setdefault(run_id, seconds)
            case journal_format.RUN_ENDED:
                session.ended.setdefault(run_id, seconds)
            case journal_format.RUN_SKIPPED:
                session.skipped.add(run_id)
            case journal_format.RUN_LEFT:
                session.left.setdefault(run_id, (text_of(line.get("reason")) or "", seconds))


def _tell(job_name: str, sessions: Sequence[_Session]) -> JobJournal:
    first, last = sessions[0], sessions[-1]
    over, closed = last.over, last.closed_seconds
    begin, end = min(first.began.values(), default=None), max(over.values(), default=None)
    is_whole = len(sessions) == 1 and begin is not None and end is not None and len(over) == len(first.began)
    warm_up = 0.0 if begin is None else min(first.warm_up_seconds, begin)
    thrown_away = sum(each.warm_up_seconds + each.probes_between_seconds for each in sessions) - warm_up
    return JobJournal(
        job_name=job_name,
        began=tuple(dict.fromkeys(run_id for each in sessions for run_id in each.began)),
        left={run_id: reason for run_id, (reason, _) in last.left.items()},
        spent_seconds={run_id: max(0.0, at - last.began[run_id]) for run_id, at in over.items()},
        restarts=len(sessions) - 1,
        interrupted=tuple(_interrupted(sessions)),
        started_at=first.started_at,
        start_seconds=begin,
        warm_up_seconds=warm_up,
        thrown_away_seconds=0.0 if is_whole else thrown_away,
        runs_seconds=max(0.0, end - begin) if is_whole and begin is not None and end is not None else None,
        end_seconds=None if closed is None or end is None else max(0.0, closed - end),
    )


def _interrupted(sessions: Sequence[_Session]) -> Iterator[str]:
    """A run that a later session skips had ended, though the journal lost the line."""
    for number, session in enumerate(sessions[:-1], start=1):
        for run_id in session.began:
            if run_id not in session.ended and not any(run_id in later.skipped for later in sessions[number:]):
                yield run_id


def merge_journals(job_name: str, hosts: Sequence[JobJournal]) -> JobJournal:
    """The host that saw most runs begin tells order and times; runs that only others know come after."""
    if not hosts:
        return JobJournal(job_name=job_name)
    fullest = max(hosts, key=lambda each: (len(each.began), each.end_seconds is not None))
    return replace(
        fullest,
        began=tuple(dict.fromkeys(run_id for each in (fullest, *hosts) for run_id in each.began)),
        left={run_id: reason for each in (*hosts, fullest) for run_id, reason in each.left.items()},
    )
