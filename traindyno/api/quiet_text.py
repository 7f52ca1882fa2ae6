"""The line for an execution in which nothing has changed for longer than can be explained."""

from traindyno.api.execution_state import DESCRIBED_JOBS, State
from traindyno.core.costs.quantity_text import seconds_text

# MiniStack waits 60 s at most between two attempts, and no function of a local lab takes longer than two minutes.
LOCAL_QUIET_SECONDS = 180.0
# On AWS a state waits 30 minutes at most between two attempts, and a function ends after 15 minutes.
AWS_QUIET_SECONDS = 2700.0


def is_explained(state: State, quiet_seconds: float, *, is_local: bool) -> bool:
    """SageMaker ends each job at its time limit, so a job under way explains any time without a change."""
    is_working = any(job.job_phase is not None for job in state.jobs) or len(state.jobs) > DESCRIBED_JOBS
    return is_working or quiet_seconds <= (LOCAL_QUIET_SECONDS if is_local else AWS_QUIET_SECONDS)


def quiet_line(state: State, quiet_seconds: float, *, option: str, logs: str) -> str:
    """``option`` selects the lab in another command; ``logs`` says where its functions' errors are."""
    planned = "" if state.runs_planned is None else f" of {state.runs_planned} planned"
    runs = f"{len(state.ended)}{planned} runs have ended"
    jobs = f"{len(state.jobs)} ended jobs have no result yet" if state.jobs else "no job is under way"
    return (
        f"nothing has changed for {seconds_text(quiet_seconds)}: {runs}, {jobs}. {_expected(state)}, or it hangs. "
        f"Errors of its functions: {logs}. Stop it with: traindyno stop {state.execution.execution_id}{option}"
    )


def _expected(state: State) -> str:
    if state.runs_planned is None:
        return "The suite is being planned"
    if len(state.ended) >= state.runs_planned:
        return "The verdict is being computed"
    return "The execution waits for capacity, a quota or room under its cap"
