"""One attempt of a shared job, as its parents tell it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from traindyno.core.jobs.run_end import RunEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class JobJournal:
    """Times are of the host whose journal tells most. None is unknown, or has not happened."""

    job_name: str
    #: In the order in which they began; also runs that the job's end or an interruption cut off.
    began: tuple[str, ...] = ()
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
    #: From that line to the begin of the first run.
    start_seconds: float | None = None
    #: The part of it that throw-away runs took, probes too.
    warm_up_seconds: float = 0.0
    #: Of those that are neither in it nor in ``runs_seconds``, as after an interruption.
    thrown_away_seconds: float = 0.0
    #: From the begin of the first run to the end of the last one, if one parent saw them all.
    runs_seconds: float | None = None
    #: From the end of the last run to the last parent's last line.
    end_seconds: float | None = None
    #: Files and lines that can't be read, or that do not agree.
    problems: tuple[str, ...] = ()
