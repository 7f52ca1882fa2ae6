"""Where a run's time went: the service's phases, then the script's own, without counting a second twice."""

from collections.abc import Mapping, Sequence

from traindyno.core.jobs.attempt import Attempt
from traindyno.core.step_log.content import Phase, Session
from traindyno.core.step_log.step_table import StepTable

FIRST_STEP, WARMUP, STEADY, OTHER = "first_step", "warmup", "steady", "other"
BEFORE_TRAINING = ("waiting", "starting", "downloading")
AFTER_TRAINING = ("uploading",)
AFTER_STEPS = ("evaluate", "save", "teardown")


def measure_phases(
    attempts: Sequence[Attempt], session: Session | None, table: StepTable | None, *, warmup_steps: int
) -> dict[str, float]:
    """Seconds by phase, in the order of their occurrence.

    Service phases are summed over attempts. Script phases are those of the lowest rank in the measured session; what
    the service calls training and no logged phase explains is ``other``.
    """
    service = _service_seconds(attempts)
    script = _script_seconds(session, table, warmup_steps) if session else {}
    training = service.pop("training", None)
    other = {} if training is None else {OTHER: max(0.0, training - sum(script.values()))}
    before = {name: service.pop(name) for name in BEFORE_TRAINING if name in service}
    after = {name: service.pop(name) for name in AFTER_TRAINING if name in service}
    return {**before, **service, **script, **other, **after}


def _service_seconds(attempts: Sequence[Attempt]) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for attempt in attempts:
        for name, value in attempt.phase_seconds.items():
            seconds[name] = seconds.get(name, 0.0) + value
    return seconds


def _script_seconds(session: Session, table: StepTable | None, warmup_steps: int) -> dict[str, float]:
    phases = session.processes[0].phases
    seconds: dict[str, float] = {}
    for phase in phases:
        seconds[phase.name] = seconds.get(phase.name, 0.0) + phase.seconds
    spans = _step_spans(table, warmup_steps) if table is not None and len(table) else {}
    stepping = {name: end - begin - _overlap(phases, begin, end) for name, (begin, end) in spans.items()}
    after_steps = {name: seconds.pop(name) for name in AFTER_STEPS if name in seconds}
    return {**seconds, **stepping, **after_steps}


def _step_spans(table: StepTable, warmup_steps: int) -> Mapping[str, tuple[float, float]]:
    """Begin and end of the first step, of the rest of warm-up and of the steady window, without holes between."""
    steps = table.ranks[0].steps
    bounds = {FIRST_STEP: (0, min(1, warmup_steps)), WARMUP: (1, warmup_steps), STEADY: (warmup_steps, len(steps))}
    return {
        name: (steps[first].begin, steps[end].begin if end < len(steps) else steps[-1].end)
        for name, (first, end) in bounds.items()
        if first < end
    }


def _overlap(phases: Sequence[Phase], begin: float, end: float) -> float:
    return sum(max(0.0, min(end, phase.end) - max(begin, phase.begin)) for phase in phases)
