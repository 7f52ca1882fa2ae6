"""A run's time by phase: the service's phases, then the script's own, without counting a second
twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traindyno.core.jobs.attempt import UNBILLED_PHASES, Attempt
from traindyno.core.jobs.job_end import JobPhaseName
from traindyno.core.step_log.content import Session
from traindyno.core.step_log.fields import LoggedPhase
from traindyno.core.step_log.line import PROBE
from traindyno.core.step_log.step_table import StepTable, phases_apart, tabulate_steps

FIRST_STEP = "first_step"
WARMUP = "warmup"
STEADY = "steady"
OTHER = "other"
EARLIER_STEPS = "earlier_steps"
REPEATED_STEPS = "repeated_steps"
# Training time before the program's first phase, and after a shared job's last run.
JOB_START = "job_start"
JOB_END = "job_end"
TRAINING = JobPhaseName.TRAINING.value
INTERRUPTED = JobPhaseName.INTERRUPTED.value
BEFORE_TRAINING = ("waiting", "starting", "downloading")
AFTER_TRAINING = ("uploading",)
SERVICE_PHASES = (*UNBILLED_PHASES, "downloading", TRAINING, "uploading", "stopping")
# How phases are told to people
PHASE_TEXTS = {
    WARMUP: "warm-up",
    JOB_START: "start of the job",
    JOB_END: "end of the job",
    "fork": "start of the process",
}
AFTER_STEPS = ("last_checkpoint", "evaluate", "save", PROBE, "teardown")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSteps:
    """Steps of one session.

    ``kept`` are the steps after which a later session continued, or the run ended. ``repeated`` are
    steps that a later session did again.
    """

    session: Session
    kept: StepTable
    repeated: StepTable


def divide_steps(sessions: Sequence[Session]) -> list[SessionSteps]:
    """Sessions in order of time.

    One that resumes after step n keeps what the sessions before it did up to step n.
    """
    divided: list[SessionSteps] = []
    resumed_at: int | None = None
    for session in reversed([session for session in sessions if session.common_steps]):
        table = tabulate_steps(session)
        first = table.numbers[0]
        last = table.numbers[-1]
        end = last + 1 if resumed_at is None else resumed_at
        kept = tabulate_steps(session, range(first, end))
        repeated = tabulate_steps(session, range(end, last + 1))
        divided.append(SessionSteps(session=session, kept=kept, repeated=repeated))
        resumed_at = first if resumed_at is None else min(resumed_at, first)
    return divided[::-1]


def wall_seconds(table: StepTable) -> float:
    """The time from the first step's begin to the last one's end, on the rank that took longest."""
    return table.wall_seconds(0, len(table) - 1) if len(table) else 0.0


def measure_phases(
    attempts: Sequence[Attempt],
    session: Session | None,
    table: StepTable | None,
    *,
    warmup_steps: int,
    others: Sequence[SessionSteps] = (),
) -> dict[str, float]:
    """Seconds by phase, in the order of their occurrence.

    Service phases are those of a job of this run alone, summed over attempts. Script phases are
    those of the lowest rank in the measured session; training time that is in no logged phase is
    the start and the end of the measured job, and for the rest ``other``.

    ``others``: the other sessions of the measured job, whose steps are ``earlier_steps`` if their
    work was kept, else ``repeated_steps``.
    """
    service: dict[str, float] = {}
    for attempt in attempts:
        _add(service, phases_alone(attempt))
    script = _script_seconds(session, table, warmup_steps) if session else {}
    for interrupted in others:
        _add(script, _seconds_of_interrupted(interrupted))
    training = service.pop(TRAINING, None)
    start = dict[str, float]()
    other = dict[str, float]()
    if training is not None:
        measured = next(
            (attempt for attempt in attempts if session and attempt.job_name == session.job_name),
            None,
        )
        parts = job_parts(measured, session) if measured and session else {}
        other = divide(max(0.0, training - sum(script.values())), parts)
        start = {JOB_START: other.pop(JOB_START)} if JOB_START in other else {}
    before = {name: service.pop(name) for name in BEFORE_TRAINING if name in service}
    after = {name: service.pop(name) for name in AFTER_TRAINING if name in service}
    return {**before, **service, **start, **script, **other, **after}


def job_parts(attempt: Attempt, session: Session) -> dict[str, float]:
    """Parts of the job's training time before the session's first phase: the container, the
    toolkit, packages.

    A shared job also has its parent and its warm-up run, and its end.
    """
    share = attempt.share
    phases = phases_alone(attempt)
    if share is not None:
        return {
            JOB_START: share.start_seconds - phases.get("downloading", 0.0),
            JOB_END: share.end_seconds - phases.get("uploading", 0.0) - phases.get("stopping", 0.0),
        }
    if attempt.started_at is None:
        return {}
    return {JOB_START: session.first_logged - attempt.started_at}


def divide(seconds: float, parts: Mapping[str, float]) -> dict[str, float]:
    """Divide time that is in no logged phase into its parts, as far as it goes, and the rest as
    ``other``.
    """
    divided = dict[str, float]()
    for name, part in parts.items():
        if part > 0 and seconds > 0:
            divided[name] = min(seconds, part)
            seconds -= divided[name]
    return {**divided, OTHER: seconds}


def phases_alone(attempt: Attempt) -> Mapping[str, float]:
    """The service's phases, of a job of this run alone; nothing of a job that did nothing for the
    run.
    """
    phases = attempt.phase_seconds
    share = attempt.share
    if share is None:
        return phases
    if not share.place:
        return {}
    return {**phases, TRAINING: max(0.0, share.alone_seconds - _beside_training(phases))}


def phase_parts(attempt: Attempt) -> Mapping[str, float]:
    """The run's part of the service's phases of its job: its part of the training, and an equal one
    of the others.
    """
    phases = attempt.phase_seconds
    share = attempt.share
    if share is None:
        return phases
    if not share.place:
        return {}
    parts = {
        name: seconds if name == INTERRUPTED else seconds / share.runs
        for name, seconds in phases.items()
    }
    return {
        **parts,
        TRAINING: max(0.0, (attempt.training_seconds or 0.0) - _beside_training(parts)),
    }


def script_phases(phases: Mapping[str, float]) -> dict[str, float]:
    """Phases recorded in the step log."""
    return {
        name: seconds
        for name, seconds in phases.items()
        if name not in (*SERVICE_PHASES, JOB_START, JOB_END, OTHER)
    }


def _beside_training(phases: Mapping[str, float]) -> float:
    """Billed time beside the training."""
    return sum(
        seconds for name, seconds in phases.items() if name not in (*UNBILLED_PHASES, TRAINING)
    )


def _script_seconds(
    session: Session, table: StepTable | None, warmup_steps: int
) -> dict[str, float]:
    phases = phases_apart(session.processes[0].phases)
    seconds = _phase_seconds(phases)
    spans = _step_spans(table, warmup_steps) if table is not None and len(table) else {}
    stepping = {
        name: end - begin - _overlap(phases, begin, end) for name, (begin, end) in spans.items()
    }
    after_steps = {name: seconds.pop(name) for name in AFTER_STEPS if name in seconds}
    return {**seconds, **stepping, **after_steps}


def _seconds_of_interrupted(steps: SessionSteps) -> dict[str, float]:
    phases = phases_apart(steps.session.processes[0].phases)
    seconds = _phase_seconds(phases)
    for name, table in ((EARLIER_STEPS, steps.kept), (REPEATED_STEPS, steps.repeated)):
        if len(table):
            first = table.ranks[0].steps[0]
            last = table.ranks[0].steps[-1]
            seconds[name] = last.end - first.begin - _overlap(phases, first.begin, last.end)
    return seconds


def _phase_seconds(phases: Sequence[LoggedPhase]) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for phase in phases:
        _add(seconds, {phase.name: phase.seconds})
    return seconds


def _add(seconds: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        seconds[name] = seconds.get(name, 0.0) + value


def _step_spans(table: StepTable, warmup_steps: int) -> Mapping[str, tuple[float, float]]:
    """Begin and end of the first step, of the rest of warm-up and of the steady window, without
    holes between.
    """
    steps = table.ranks[0].steps
    bounds = {
        FIRST_STEP: (0, min(1, warmup_steps)),
        WARMUP: (1, warmup_steps),
        STEADY: (warmup_steps, len(steps)),
    }
    return {
        name: (steps[first].begin, steps[end].begin if end < len(steps) else steps[-1].end)
        for name, (first, end) in bounds.items()
        if first < end
    }


def _overlap(phases: Sequence[LoggedPhase], begin: float, end: float) -> float:
    return sum(max(0.0, min(end, phase.end) - max(begin, phase.begin)) for phase in phases)


def phase_text(phase: str) -> str:
    """The phase in words, also one that a user named."""
    return PHASE_TEXTS.get(phase, phase.replace("_", " "))
