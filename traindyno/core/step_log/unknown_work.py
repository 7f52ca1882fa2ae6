"""Logs that show no rate, because how much work the run did is unknown: steps are missing between
the logged ones, whose time is in the log and whose work is not, or processes log the same batches.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from traindyno.core.step_log.content import Session
from traindyno.core.step_log.fields import facts_between_steps, have_equal_batches
from traindyno.core.step_log.line import UNLOGGED_STEPS

MOST_NAMED = 3
SAME_BATCHES = (
    "several of its processes had the same first batches, so that their rows would be counted once "
    "in each; expected a part of the data for each process (DistributedSampler); or, in "
    "step_log.step(...) or StepLogCallback(...), shared_by=N if N processes train on the same rows "
    "(sequence, context, tensor parallel), shared_by=1 if their data are constant"
)


def count_unlogged(session: Session) -> int:
    """The numbers between the session's first and last step that not every process logged, or the
    steps that an optimizer did between the logged ones.
    """
    return _missing(session) or _between(session)


def _between(session: Session) -> int:
    """Steps of an optimizer between the logged ones, of the process with the most."""
    facts = (facts_between_steps(process.phases) for process in session.processes)
    return max((int(fact[UNLOGGED_STEPS]) for fact in facts if fact), default=0)


def _missing(session: Session) -> int:
    return _numbered(session) - len(session.common_steps)


def name_unknown_work(session: Session) -> str | None:
    """What makes the work of a session unknown, as a part of a sentence; None if it is known."""
    unlogged = count_unlogged(session)
    if unlogged:
        return f"did {unlogged:,} steps that are not in its log"
    return "has processes with the same batches" if have_equal_batches(session.processes) else None


def describe_unknown_work(session: Session) -> str | None:
    """None if no step is missing, and none is in the logs of several processes."""
    return _describe_unlogged(session) or _describe_equal_batches(session)


def _describe_equal_batches(session: Session) -> str | None:
    if not have_equal_batches(session.processes):
        return None
    return f"job {session.job_name}: no rate is measured, because {SAME_BATCHES}"


def _describe_unlogged(session: Session) -> str | None:
    missing = _missing(session)
    between = _between(session)
    numbers = session.common_steps
    if between and not missing:
        return (
            f"job {session.job_name}: the optimizer did {between:,} steps between the "
            f"{len(numbers):,} logged ones: their work is unknown, so no rate is measured; "
            "expected `with step_log.step(...)` around each optimizer step"
        )
    if not missing:
        return None
    gaps = list(islice(_gaps(numbers), MOST_NAMED + 1))
    named = f" ({', '.join(gaps[:MOST_NAMED])}{', …' * (len(gaps) > MOST_NAMED)})" if gaps else ""
    return (
        f"job {session.job_name}: {missing:,} of {_numbered(session):,} steps were not logged by "
        f"every process{named}: their work is unknown, so no rate is measured; expected a line for "
        "each step"
    )


def describe_lost(sessions: Sequence[Session]) -> Iterator[str]:
    """The steps after which a session continued although the one before it was not logged so far.

    Where it had none left to do, its end line says so.
    """
    with_steps = [session for session in sessions if session.common_steps]
    for before, after in pairwise(with_steps):
        yield from _lost(before, after, after.common_steps[0] - 1)
    if with_steps and sessions[-1] is not with_steps[-1]:
        ends = (process.ended_after for process in sessions[-1].processes)
        yield from _lost(
            with_steps[-1], sessions[-1], max((end for end in ends if end is not None), default=0)
        )


def _lost(before: Session, after: Session, continued_after: int) -> Iterator[str]:
    first = before.common_steps[-1] + 1
    if first <= continued_after and not any(process.steps.is_full for process in before.processes):
        yield (
            f"job {after.job_name}: no log has the steps {first:,} to {continued_after:,}, after "
            "which it continued: the lines were lost with the instance; these steps are not "
            "counted, and their time counts as lost"
        )


def _numbered(session: Session) -> int:
    numbers = session.common_steps
    return numbers[-1] - numbers[0] + 1 if numbers else 0


def _gaps(numbers: Sequence[int]) -> Iterator[str]:
    for before, after in pairwise(numbers):
        if after > before + 1:
            yield f"{before + 1}" if after == before + 2 else f"{before + 1} to {after - 1}"
