"""What one run's step log shows: steady window, rates, losses, memory and the environment they were
measured in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from traindyno.core.measurement.change_points import LEAST_CHANGE
from traindyno.core.measurement.loss_curve import LossCurve, draw_loss_curve
from traindyno.core.measurement.run_phases import SessionSteps, divide_steps, wall_seconds
from traindyno.core.measurement.stalls import OneTimeEvent, RecurringEvent
from traindyno.core.measurement.steady_window import SteadyState
from traindyno.core.measurement.step_parts import StepParts, measure_parts
from traindyno.core.measurement.step_time import SingleStall, StepTime
from traindyno.core.measurement.throughput import Throughput, measure_table, measure_throughput
from traindyno.core.step_log.content import ProcessLog, Session, StepLog
from traindyno.core.step_log.fields import Evaluation, ModelSize, facts_of
from traindyno.core.step_log.line import BATCH_SEARCH, CHECKPOINT, ROW_VALUES, TARGET_REACHED
from traindyno.core.step_log.step_table import StepTable
from traindyno.core.step_log.unknown_work import name_unknown_work
from traindyno.figures.beyond import Drift
from traindyno.figures.estimates import mean_of

LEARNT_LATER = (BATCH_SEARCH, ROW_VALUES)
# A run that loses more than this share of its CPU time is contended: the share equals the tolerance
# between cells.
LARGEST_STEAL_SHARE = LEAST_CHANGE
LARGEST_FOREIGN_SHARE = 0.05


def checkpoint_seconds(session: Session) -> float | None:
    """The mean time without steps of a checkpoint, on its slowest process; None without
    checkpoints.
    """
    waits = [
        [phase for phase in process.phases if phase.name == CHECKPOINT]
        for process in session.processes
    ]
    slowest = [max(phase.seconds for phase in together) for together in zip(*waits, strict=False)]
    return mean_of(slowest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Other work on the hosts, as shares between 0 and 1 of the worst host while the session ran.

    ``steal_share`` is the CPU time that the hypervisor gave to others ÷ the host's capacity, and
    ``foreign_share`` the CPU time of processes outside the job ÷ the host's capacity.
    ``queue_share`` is the time for which the job's threads were ready and had no core ÷ (that time
    + their CPU time).
    """

    steal_share: float
    foreign_share: float
    queue_share: float

    @property
    def others_share(self) -> float:
        """The part of the host's capacity that other work took."""
        return self.steal_share + self.foreign_share

    @property
    def is_contended(self) -> bool:
        """Whether other work disturbed the run.

        Threads also wait if a job has more threads than cores, so waiting counts only together with
        foreign work.
        """
        waits_for_others = (
            self.queue_share > LARGEST_FOREIGN_SHARE and self.foreign_share > LARGEST_FOREIGN_SHARE
        )
        return self.steal_share > LARGEST_STEAL_SHARE or waits_for_others


def measure_contention(session: Session) -> Contention | None:
    """Contention of a session; None if no process logged host loads (not Linux, or a run shorter
    than a line's interval).
    """
    hosts: dict[str, list[ProcessLog]] = {}
    for process in session.processes:
        if process.host_loads and process.environment is not None:
            hosts.setdefault(process.environment.host_id or process.environment.host, []).append(
                process
            )
    contentions = map(_of_host, hosts.values())
    return max(
        contentions,
        key=lambda one: (one.is_contended, one.steal_share + one.queue_share),
        default=None,
    )


def _of_host(processes: Sequence[ProcessLog]) -> Contention:
    """The host's own counters are the same in each of its processes, so they are read from one."""
    host = processes[0].host_loads
    loads = [load for process in processes for load in process.host_loads]
    capacity = sum(load.seconds * load.host_cpu_count for load in host)
    own = sum(load.cpu_seconds for load in loads)
    waited = sum(load.run_queue_seconds for load in loads)
    busy = sum(load.host_busy_seconds for load in host)
    return Contention(
        steal_share=sum(load.steal_seconds for load in host) / capacity,
        foreign_share=max(0.0, busy - own) / capacity,
        queue_share=waited / (waited + own) if waited + own else 0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredJob:
    """The job of the measured session, and what its other sessions took.

    ``began_at``: epoch second of its first logged phase or process. ``interruptions``: how often it
    was restarted.

    ``lost_seconds`` went to repeated work and to the time between sessions, ``kept_seconds`` to
    steps of other sessions whose work was kept.
    """

    name: str
    began_at: float
    interruptions: int
    lost_seconds: float
    kept_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """What the step log of one run shows."""

    steady_state: SteadyState
    #: Rate; None if no step was steady, or if a rank's log is missing: then some work is unknown.
    throughput: Throughput | None
    samples_before_steady: int
    loss: LossCurve
    #: Evaluations in the measured job.
    evaluations: tuple[Evaluation, ...]
    #: Peak of the device that used the most; None if no step reports it.
    peak_memory_bytes: int | None
    model: ModelSize | None
    #: Other work on the hosts.
    contention: Contention | None
    recurring: tuple[RecurringEvent, ...]
    one_time: tuple[OneTimeEvent, ...]
    #: Wall time of the steady window without one-time events.
    steady_seconds: float
    job: MeasuredJob
    checkpoint_seconds: float | None
    #: Why the run ended before its last step (see ``end_line``).
    end_reason: str | None
    #: Stalls whose rate is unknown; the run's rate has them as they were seen.
    undecided_stalls: tuple[SingleStall, ...]
    #: Drift of the steady window; None below 20 steps.
    drift: Drift | None
    #: What a step consists of; None without a rate.
    step_parts: StepParts | None
    #: Why there is no rate, as a part of a sentence: the log lacks steps, or has rows twice.
    unknown_work: str | None

    @property
    def ended_at_target(self) -> bool:
        """Whether the run ended at the goal's target, after any number of steps."""
        return self.end_reason == TARGET_REACHED

    @property
    def is_contended(self) -> bool:
        """Whether other work on its host slowed the run down; False if the log does not show it."""
        return self.contention is not None and self.contention.is_contended

    @property
    def is_unsteady(self) -> bool:
        """Whether the run was not steady.

        False for a run that ended at its target, since its time is measured and not projected.
        """
        return not self.steady_state.is_reached and not self.ended_at_target

    @property
    def unsteady_reason(self) -> str | None:
        return self.steady_state.reason if self.is_unsteady else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """Hosts and facts as the processes reported them; ``facts`` are the lowest rank's.

    ``hosts`` are names within the job, ``host_ids`` name machines, without unknown ones.
    """

    world_size: int
    hosts: tuple[str, ...]
    facts: Mapping[str, Any]
    host_ids: tuple[str, ...] = ()


def measure_run(
    step_log: StepLog,
    session: Session,
    table: StepTable,
    *,
    warmup_steps: int | None,
    peak_flops_per_device: float | None,
) -> MeasuredRun:
    """Measure a run.

    Args:
        step_log: Log of the run.
        session: Session of the log that is measured.
        table: Steps of that session.
        warmup_steps: Steps to leave out; None to find the steady window.
        peak_flops_per_device: Peak of the device; None where unknown.
    """
    step_time = measure_table(table, warmup_steps=warmup_steps)
    steady = step_time.steady_state
    sessions = [logged for logged in step_log.sessions if logged.job_name == session.job_name]
    began_at = min(logged.first_logged for logged in sessions)
    divided = divide_steps(step_log.sessions)
    unknown_work = name_unknown_work(session)
    throughput = None
    if not session.missing_ranks and not unknown_work:
        throughput = measure_throughput(
            table,
            step_time,
            device_count=session.world_size,
            flops_per_token=step_log.model.flops_per_token if step_log.model else None,
            peak_flops_per_device=peak_flops_per_device,
        )
    return MeasuredRun(
        steady_state=steady,
        throughput=throughput,
        samples_before_steady=sum(table.samples[: steady.warmup_steps]),
        loss=_loss_curve(divided, began_at),
        evaluations=tuple(evaluation for session in sessions for evaluation in session.evaluations),
        peak_memory_bytes=_peak_memory(table),
        model=step_log.model,
        contention=measure_contention(session),
        recurring=step_time.recurring,
        one_time=tuple(
            replace(event, step=table.numbers[event.step]) for event in step_time.one_time
        ),
        steady_seconds=_steady_seconds(table, step_time),
        job=_measured_job(sessions, session, kept_seconds=_kept_seconds(divided, session)),
        checkpoint_seconds=checkpoint_seconds(session),
        end_reason=session.end_reason,
        undecided_stalls=step_time.undecided_stalls,
        drift=step_time.drift,
        step_parts=measure_parts(session, table, throughput, step_time.relative_error),
        unknown_work=unknown_work,
    )


def _measured_job(
    sessions: Sequence[Session], session: Session, *, kept_seconds: float
) -> MeasuredJob:
    """The job of the measured session; ``sessions`` are all that it has."""
    return MeasuredJob(
        name=session.job_name,
        began_at=min(logged.first_logged for logged in sessions),
        interruptions=len(sessions) - 1,
        lost_seconds=_lost_seconds(sessions, session) - kept_seconds,
        kept_seconds=kept_seconds,
    )


def _kept_seconds(divided: Sequence[SessionSteps], session: Session) -> float:
    """Wall time of the kept steps of the other sessions of the session's job."""
    return sum(
        wall_seconds(part.kept)
        for part in divided
        if part.session is not session and part.session.job_name == session.job_name
    )


def _loss_curve(divided: Sequence[SessionSteps], began_at: float) -> LossCurve:
    """The losses of the steps that were kept; an earlier job than the measured one may have run the
    first of them.
    """
    first_began = min([began_at, *(part.session.begin for part in divided if len(part.kept))])
    return draw_loss_curve(*(part.kept for part in divided), began_at=first_began)


def _peak_memory(table: StepTable) -> int | None:
    peaks = [rank.steps.peak_memory_bytes for rank in table.ranks]
    return max((peak for peak in peaks if peak), default=None)


def _steady_seconds(table: StepTable, step_time: StepTime) -> float:
    """Wall time of the steady window without one-time events."""
    first = step_time.steady_state.warmup_steps
    return max(0.0, table.wall_seconds(first, len(table) - 1) - step_time.one_time_seconds)


def read_environment(step_log: StepLog) -> RunEnvironment | None:
    """The facts are those of the first process, with those that it learnt until its first step,
    what a search for its batch found, and how large its first rows were.
    """
    environments = step_log.environments
    if not environments:
        return None
    first = next(process for process in step_log.sessions[-1].processes if process.environment)
    later = dict[str, Any]()
    for phase in first.phases:
        later |= {name: phase.facts[name] for name in LEARNT_LATER if name in phase.facts}
    return RunEnvironment(
        world_size=environments[0].world_size,
        hosts=tuple(sorted({environment.host for environment in environments})),
        facts={**facts_of(first.environment, first.phases), **later},
        host_ids=tuple(
            sorted({environment.host_id for environment in environments if environment.host_id})
        ),
    )


def _lost_seconds(sessions: Sequence[Session], measured: Session) -> float:
    """The time from the first session's begin to the last one's end, less the measured session."""
    ends = [session.end for session in sessions if session.end is not None]
    own_end = measured.end
    if own_end is None:
        return 0.0
    return max(ends) - min(session.begin for session in sessions) - (own_end - measured.begin)
