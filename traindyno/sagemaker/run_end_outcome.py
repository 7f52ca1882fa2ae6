"""From the end of a run that shared its job to its outcome, as if the training toolkit had told it of a job."""

from signal import SIGKILL

from traindyno.core.jobs.journal_format import DEVICE_BUSY, EXITED, JOBS_DIED, OUTPACED, TIME_LIMIT
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import RunEnd
from traindyno.core.step_log.line import FAILURE_PREFIX
from traindyno.sagemaker.failure_reasons import read_failure_reason

SIGNAL_BASE = 128
# Reasons for which the lab, and not the run, is to blame.
FAULTS = {
    JOBS_DIED: "its job died twice while it ran, so that it was not started again",
    DEVICE_BUSY: "it was not started: what ran before it in its job had not freed the device's memory",
}


def outcome_of(end: RunEnd) -> tuple[Outcome, str | None]:
    """The outcome, and a message unless the run completed."""
    if end.reason == TIME_LIMIT:
        return Outcome.TIMED_OUT, f"still running after {end.own_seconds:.0f} seconds"
    if end.reason == OUTPACED:
        return Outcome.OUTPACED, f"{end.bound.text if end.bound else 'much slower'} than another run of its job"
    if end.reason != EXITED:
        unknown = f"it ended for a reason that this version does not know: {end.reason}"
        return Outcome.INTERNAL_ERROR, FAULTS.get(end.reason, unknown)
    if end.exit_code == 0:
        return Outcome.COMPLETED, None
    meaning, message = read_failure_reason(_toolkit_text(end))
    assert isinstance(meaning, Outcome), "only SageMaker's own prefixes lead to another attempt"
    return meaning, message


def _toolkit_text(end: RunEnd) -> str:
    """What would be the failure reason of a job: the run's own words, or the end of its output in the toolkit's."""
    code = end.exit_code if end.signal is None else SIGNAL_BASE + end.signal
    failure = end.failure or ""
    if failure.startswith(FAILURE_PREFIX):
        return f"AlgorithmError: {failure}"
    said = f'AlgorithmError: ExecuteUserScriptError:\nExitCode {code}\nErrorMessage "{failure}"\nCommand ""'
    kernel = f" out of memory: the kernel killed {end.oom_kills} processes while the run ran"
    was_killed = code == SIGNAL_BASE + SIGKILL and end.oom_kills
    return f"{said}{kernel if was_killed else ''}, exit code: {code}"
