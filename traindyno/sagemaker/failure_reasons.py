"""From a failed job's FailureReason to an outcome of the run, or to another attempt."""

import re
from dataclasses import dataclass

from traindyno.core.errors import CapacityUnavailable, NextAttempt, ServiceFault, SlotUnavailable
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.line import FAILURE_PREFIX
from traindyno.sagemaker.script_errors import describe_script_error

# Outcomes that only SageMaker's description of the job, or the lab, can know.
NOT_OF_CONTAINER = frozenset(
    {
        Outcome.COMPLETED,
        Outcome.TIMED_OUT,
        Outcome.OUTPACED,
        Outcome.COST_STOPPED,
        Outcome.CAPACITY_UNAVAILABLE,
        Outcome.QUOTA_EXCEEDED,
    }
)
# Where ``report_failure`` writes: at the begin of the failure file, or of a line of stderr, which the training toolkit
# quotes. Elsewhere the text is part of somebody's message.
OWN_TEXT = re.compile(
    rf"(?:\A(?:AlgorithmError: )?|^|ErrorMessage \")"
    rf"{FAILURE_PREFIX}: (?P<outcome>{'|'.join(sorted(set(Outcome) - NOT_OF_CONTAINER))}): (?P<message>.*)",
    re.DOTALL | re.MULTILINE,
)

Meaning = Outcome | type[NextAttempt]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRule:
    pattern: re.Pattern[str]
    meaning: Meaning


def _rule(pattern: str, meaning: Meaning) -> FailureRule:
    return FailureRule(pattern=re.compile(pattern, re.IGNORECASE), meaning=meaning)


# The first match counts: SageMaker's own prefixes, then texts in a message of any prefix, then the kind of error.
# A rule for another attempt needs SageMaker's prefix: another attempt is paid, and a script can write the rest.
FAILURE_RULES = (
    _rule(r"^CapacityError", CapacityUnavailable),
    _rule(r"^InternalServerError", ServiceFault),
    _rule(r"^InternalError", ServiceFault),
    _rule(r"^ResourceLimitExceeded", SlotUnavailable),
    _rule(
        r"out of memory|OutOfMemory|CUBLAS_STATUS_ALLOC_FAILED|use an instance type with more memory"
        r"|MemoryError\b|can't allocate memory|cannot allocate memory(?! in static TLS)|std::bad_alloc",
        Outcome.OUT_OF_MEMORY,
    ),
    _rule(r"NRT_RESOURCE|failed to allocate .*(device|HBM)", Outcome.OUT_OF_MEMORY),
    _rule(r"exit code:? ?(-9|137)\b|signal 9|SIGKILL", Outcome.KILLED),
    _rule(
        r"CannotPullContainer|Cannot pull|could not be pulled|image .*(not found|does not exist)", Outcome.IMAGE_ERROR
    ),
    _rule(r"Cannot find .*image|Requested image|manifest .*unknown|exec format error", Outcome.IMAGE_ERROR),
    _rule(r"CannotStartContainer|starting container process caused", Outcome.IMAGE_ERROR),
    _rule(
        r"Access ?Denied|not authorized to perform|Forbidden|UnauthorizedOperation|\(403\)", Outcome.PERMISSION_ERROR
    ),
    _rule(r"unable to assume role|Could not assume role|is not valid.*role", Outcome.PERMISSION_ERROR),
    _rule(r"NCCL (error|WARN).*(unhandled system error|remote process exited)", Outcome.USER_CODE_ERROR),
    _rule(r"^(AlgorithmError|ClientError)|^Framework ?Error|ExecuteUserScriptError", Outcome.USER_CODE_ERROR),
)


def read_failure_reason(text: str) -> tuple[Meaning, str]:
    """The meaning of a failed job and the message worth showing. The outcome that our own code wrote in the container
    (``failure_text``) takes precedence over all rules; text of the user's script never leads to another attempt.
    """
    own = OWN_TEXT.search(text)
    if own:
        return Outcome(own["outcome"]), own["message"].strip()
    message = " ".join(text.split())
    for rule in FAILURE_RULES:
        if rule.pattern.search(message):
            return rule.meaning, describe_script_error(text) or message
    return Outcome.INTERNAL_ERROR, message or "the job failed and SageMaker gave no reason"
