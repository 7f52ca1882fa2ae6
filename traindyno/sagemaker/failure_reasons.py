"""From a failed job's FailureReason, or a run's end in a shared job, to an outcome or another
attempt, in one sentence.

A reason has two authors. Texts of SageMaker begin with its own prefix and say what SageMaker did:
the image, the role, the download. After ``AlgorithmError`` stands what the container wrote, in the
end the user's script, which can print any words: there, only what a process can cause is looked
for.
"""

import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from signal import SIGKILL

from traindyno.core.errors import CapacityUnavailable, NextAttempt, ServiceFault, SlotUnavailable
from traindyno.core.jobs.journal_format import (
    DEVICE_BUSY,
    EQUAL_BATCHES,
    EXITED,
    JOBS_DIED,
    OUTPACED,
    STALLED,
    TIME_LIMIT,
)
from traindyno.core.jobs.outcome import NOT_OF_CONTAINER, Outcome
from traindyno.core.jobs.run_end import RunEnd
from traindyno.core.step_log.line import FAILURE_PREFIX
from traindyno.core.step_log.unknown_work import SAME_BATCHES

SIGNAL_BASE = 128
JOBS_DIED_TEXT = "its job ended twice while it ran, so that it was not started again"
BUSY_TEXT = "it was not started: what ran before it in its job had not freed the device's memory"
# Outcomes of ends that say nothing else; the first two are the lab's fault and not the run's.
ENDS = {
    JOBS_DIED: (Outcome.INTERNAL_ERROR, JOBS_DIED_TEXT),
    DEVICE_BUSY: (Outcome.INTERNAL_ERROR, BUSY_TEXT),
    EQUAL_BATCHES: (Outcome.USER_CODE_ERROR, f"it was ended, because {SAME_BATCHES}"),
}
# Where ``report_failure`` writes: at the begin of the failure file, or of a line of stderr, which
# the training toolkit quotes. Elsewhere the text is part of somebody's message.
OWN_TEXT = re.compile(
    rf"(?:\A(?:AlgorithmError: )?|^|ErrorMessage \"){FAILURE_PREFIX}: "
    rf"(?P<outcome>{'|'.join(sorted(set(Outcome) - NOT_OF_CONTAINER))}): (?P<message>.*)",
    re.DOTALL | re.MULTILINE,
)
OF_CONTAINER = re.compile(r"\AAlgorithmError\b|ExecuteUserScriptError")
Meaning = Outcome | type[NextAttempt]
MORE_DISK = "; on AWS job.volume_size_gb is the size of the job's disk"
TOOLKIT = re.compile(
    r"ExecuteUserScriptError:\s*ExitCode (?P<code>-?\d+)"
    r"\s*ErrorMessage \"(?P<message>.*?)\"\s*(?:Command \"|, exit|\Z)",
    re.DOTALL,
)
# The toolkit's guess at every SIGKILL
OF_TOOLKIT = re.compile(r"ExtraInfo \"OutOfMemory: Process killed by SIGKILL[^\"]*\"\s*")
SILENT = re.compile(r"ErrorMessage \"\"")
EXIT_CODE = re.compile(r"\bexit code:? ?(?P<code>-?\d+)\W*\Z")
PLACE = re.compile(r"File \"(?P<file>[^\"]+)\", line (?P<line>\d+)")
# The end of a Python traceback: on lines of its own, or where SageMaker has joined the lines.
NAMED = r"(?P<error>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b(?:: .*)?)\Z"
OF_ARGPARSE = r"(?P<error>\S+\.py: error: .*)\Z"
ERRORS = (
    re.compile(rf"\A(?:.*\n)?{NAMED}", re.DOTALL),
    *(re.compile(rf"\A(?:.*\s)?{words}", re.DOTALL) for words in (OF_ARGPARSE, NAMED)),
)
NOT_OF_USER = ("site-packages/", "dist-packages/", "lib/python", "<frozen")
NO_SPACE = "No space left on device"
# What to do about errors whose own words don't say it; the first match counts.
ADVICE = (
    (
        re.compile(
            rf"{NO_SPACE}.*/dev/shm|killed by signal: Bus error|unable to allocate shared memory"
        ),
        "; /dev/shm is full, the host's shared memory: use fewer loader workers, or smaller "
        "batches",
    ),
    (re.compile(NO_SPACE), f"; write less, or free space{MORE_DISK}"),
    (
        re.compile(r"gated repo|(401|403) Client Error.*(huggingface|Repository|/resolve/)"),
        "; the Hub wants a token of somebody who may read it: workload.hub_token_secret of a "
        "built-in task names a secret with it, a script sets HF_TOKEN from one",
    ),
)
BY_SIGNAL = {
    signal.SIGSEGV: (
        "segmentation fault: compiled code of the script, or of a package, used memory that is "
        "not its own"
    ),
    signal.SIGBUS: "bus error: compiled code used memory that is not there, as a full /dev/shm",
    signal.SIGABRT: "aborted: compiled code of the script, or of a package, ended the process",
    signal.SIGILL: "illegal instruction: compiled code was built for another processor",
    signal.SIGFPE: "arithmetic error in compiled code",
    signal.SIGKILL: "another program, a person or the kernel ended the process",
}
# How torchrun tells of its processes, after their output; SageMaker may have joined the lines.
TORCHRUN_LINE = re.compile(
    r"(?:\A|\s)(?:[EW]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ \S*torch/distributed/elastic/"
    r"|(?:ERROR|WARNING):torch\.distributed\.elastic)"
)
TORCHRUN_SIGNAL = re.compile(r"Signal (?P<number>\d+) \(SIG\w+\) received by PID")
# The local cloud, and the parent of a shared job, add it to what the toolkit would say.
OF_KERNEL = re.compile(r"out of memory: the kernel killed \d+ processes")


def outcome_of(end: RunEnd) -> tuple[Outcome, str | None]:
    """The outcome, and a message unless the run completed."""
    if end.reason == TIME_LIMIT:
        return Outcome.TIMED_OUT, f"still running after {end.own_seconds:.0f} seconds"
    if end.reason == STALLED:
        return (
            Outcome.TIMED_OUT,
            f"ended after {end.own_seconds:.0f} seconds, when a step lasted far longer than the "
            "steps before it",
        )
    if end.reason == OUTPACED:
        return (
            Outcome.OUTPACED,
            f"{end.bound.text if end.bound else 'much slower'} than another run of its job",
        )
    if end.reason != EXITED:
        unknown = f"it ended for a reason that this version does not know: {end.reason}"
        return ENDS.get(end.reason, (Outcome.INTERNAL_ERROR, unknown))
    if end.exit_code == 0:
        return Outcome.COMPLETED, None
    meaning, message = read_failure_reason(_toolkit_text(end))
    assert isinstance(meaning, Outcome), "only SageMaker's own prefixes lead to another attempt"
    return meaning, message


def _toolkit_text(end: RunEnd) -> str:
    """What would be the failure reason of a job: the run's own words, or the end of its output in
    the toolkit's.
    """
    code = end.exit_code if end.signal is None else SIGNAL_BASE + end.signal
    failure = end.failure or ""
    if failure.startswith(FAILURE_PREFIX):
        return f"AlgorithmError: {failure}"
    said = (
        "AlgorithmError: ExecuteUserScriptError:\n"
        f"ExitCode {code}\n"
        f'ErrorMessage "{failure}"\n'
        'Command ""'
    )
    kernel = f" out of memory: the kernel killed {end.oom_kills} processes while the run ran"
    was_killed = code == SIGNAL_BASE + SIGKILL and end.oom_kills
    return f"{said}{kernel if was_killed else ''}, exit code: {code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRule:
    """Rule that recognises a failure by its message.

    ``hint`` is what the reader can do about it, where SageMaker's text does not say so.
    """

    pattern: re.Pattern[str]
    meaning: Meaning
    hint: str


def _rule(pattern: str, meaning: Meaning, hint: str = "") -> FailureRule:
    return FailureRule(pattern=re.compile(pattern, re.IGNORECASE), meaning=meaning, hint=hint)


# What a process can cause; the first match counts.
PROCESS_RULES = (
    _rule(
        r"out of memory|OutOfMemory|CUBLAS_STATUS_ALLOC_FAILED|use an instance type with more "
        r"memory|MemoryError\b|can't allocate memory|cannot allocate memory(?! in static "
        r"TLS)|std::bad_alloc",
        Outcome.OUT_OF_MEMORY,
    ),
    _rule(r"NRT_RESOURCE|failed to allocate .*(device|HBM)", Outcome.OUT_OF_MEMORY),
    _rule(
        r"DataLoader worker \(pid\S* [\d, ]+\) is killed by signal: Killed",
        Outcome.KILLED,
        "; most often the host's memory is full: use fewer loader workers",
    ),
    _rule(r"exit ?code:? ?(-9|137)\b|signal 9|SIGKILL", Outcome.KILLED),
    _rule(
        (
            r"uncorrectable ECC error|GPU is lost|fallen off the "
            r"bus|NRT_EXEC_HW_ERR|uncorrectable NVLink"
        ),
        Outcome.INTERNAL_ERROR,
        "; a device of the host is faulty, which is no fault of the script: run it again",
    ),
)
# What SageMaker says, by its prefixes, then by texts after any prefix of its own. Another attempt
# is paid, so that a rule for one needs the prefix.
SERVICE_RULES = (
    _rule(r"^CapacityError", CapacityUnavailable),
    _rule(r"^InternalServerError", ServiceFault),
    _rule(r"^InternalError", ServiceFault),
    _rule(r"^ResourceLimitExceeded", SlotUnavailable),
    _rule(
        r"CannotPullContainer|Cannot pull|could not be pulled|image .*(not found|does not exist)",
        Outcome.IMAGE_ERROR,
    ),
    _rule(r"Cannot find .*image|Requested image|manifest .*unknown", Outcome.IMAGE_ERROR),
    _rule(r"CannotStartContainer|starting container process caused", Outcome.IMAGE_ERROR),
    _rule(
        r"Access ?Denied|not authorized to perform|Forbidden|UnauthorizedOperation|\(403\)",
        Outcome.PERMISSION_ERROR,
    ),
    _rule(
        r"unable to assume role|Could not assume role|is not valid.*role", Outcome.PERMISSION_ERROR
    ),
    _rule(r"Insufficient disk space", Outcome.USER_CODE_ERROR, MORE_DISK),
    _rule(r"No space left on device", Outcome.USER_CODE_ERROR),
    _rule(
        r"Data download failed",
        Outcome.USER_CODE_ERROR,
        (
            "; the script did not start: check the S3 addresses of the suite's model, dataset, "
            "source and channels"
        ),
    ),
    *PROCESS_RULES,
    _rule(r"^ClientError", Outcome.USER_CODE_ERROR),
)
CONTAINER_RULES = (
    # The container's own program can't be started: no script has run.
    _rule(r"\AAlgorithmError: exec format error", Outcome.IMAGE_ERROR),
    *PROCESS_RULES,
    _rule(r"", Outcome.USER_CODE_ERROR),
)


def read_failure_reason(text: str) -> tuple[Meaning, str]:
    """The meaning of a failed job and the message worth showing.

    The outcome that our own code wrote in the container (``failure_text``) takes precedence over
    all rules; text of the user's script never leads to another attempt.
    """
    text = OF_TOOLKIT.sub("", text)
    own = OWN_TEXT.search(text)
    if own:
        return Outcome(own["outcome"]), _advised(own["message"].strip())
    message = " ".join(text.split())
    for rule in CONTAINER_RULES if OF_CONTAINER.search(text) else SERVICE_RULES:
        if rule.pattern.search(message):
            return rule.meaning, _advised(_describe(text) or message) + rule.hint
    return Outcome.INTERNAL_ERROR, message or "the job failed and SageMaker gave no reason"


def killed_by_torchruns_log(message: str | None, log: Iterable[str]) -> str | None:
    """A message for a run of which the toolkit says nothing, where torchrun's last lines tell that
    SIGKILL ended a process; the toolkit keeps what follows a Python error's name only.
    """
    signals = TORCHRUN_SIGNAL.findall("\n".join(log))
    if not SILENT.search(message or "") or not signals or int(signals[-1]) != SIGKILL:
        return None
    return _killed("", SIGKILL, 1, "")


def _describe(reason: str) -> str | None:
    """One sentence for what a process did: the user's error first, then where; None if the reason
    says no more.
    """
    toolkit_end = TOOLKIT.search(reason)
    if toolkit_end is None:
        code = EXIT_CODE.search(reason) if OF_CONTAINER.search(reason) else None
        killed_by = _signal_of(int(code["code"])) if code else None
        if code is None or killed_by is None:
            return None
        before = " ".join(
            reason[: code.start()].removeprefix("AlgorithmError:").strip(" ,").split()
        )
        return _killed(reason, killed_by, int(code["code"]), before)
    code_number = int(toolkit_end["code"])
    message = _without_torchrun(toolkit_end["message"].strip())
    error = next((match for pattern in ERRORS if (match := pattern.search(message))), None)
    if error is not None:
        what = " ".join(error["error"].split())
        return f"{what}{_place(message)} (exit code {code_number})"
    # The process that torchrun names last is the cause; torchrun itself exits with 1.
    signals = TORCHRUN_SIGNAL.findall(toolkit_end["message"])
    killed_by = _signal_of(code_number) or (_signal_of(-int(signals[-1])) if signals else None)
    return None if killed_by is None else _killed(reason, killed_by, code_number, message)


def _killed(reason: str, killed_by: signal.Signals, code: int, output: str) -> str:
    kernel = OF_KERNEL.search(reason)
    what = kernel[0] if kernel else BY_SIGNAL.get(killed_by, "a signal ended the process")
    last = (
        ""
        if not output or (kernel and kernel[0] in output)
        else f"; its last output: {' '.join(output.split())}"
    )
    return f"{what} ({killed_by.name}, exit code {code}){last}"


def _advised(message: str) -> str:
    return message + next((what for error, what in ADVICE if error.search(message)), "")


def _without_torchrun(message: str) -> str:
    """torchrun's own traceback, and its lines about its processes, follow the script's output."""
    before, _, after = message.rpartition("Traceback (most recent call last):")
    of_script = before.strip() if "ChildFailedError" in after and before.strip() else message
    lines = TORCHRUN_LINE.search(of_script)
    return of_script[: lines.start()].strip() if lines else of_script


def _place(message: str) -> str:
    """The innermost line of the user's own code; of any code if the traceback's end names no
    other.
    """
    places = [(match["file"], match["line"]) for match in PLACE.finditer(message)]
    own = [place for place in places if not any(part in place[0] for part in NOT_OF_USER)]
    if not places:
        return ""
    file, line = (own or places)[-1]
    return f" ({PurePosixPath(file).name}, line {line})"


def _signal_of(code: int) -> signal.Signals | None:
    """A shell reports 128 + the signal, Python its negative."""
    number = -code if code < 0 else code - 128
    return signal.Signals(number) if number in {known.value for known in signal.Signals} else None
