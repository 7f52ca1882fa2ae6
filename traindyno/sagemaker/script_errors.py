"""What went wrong in a user's script, from the training toolkit's ExecuteUserScriptError: the error, then where."""

import re
import signal
from pathlib import PurePosixPath

TOOLKIT = re.compile(
    r"ExecuteUserScriptError:\s*ExitCode (?P<code>-?\d+)"
    r"\s*ErrorMessage \"(?P<message>.*?)\"\s*(?:Command \"|, exit|\Z)",
    re.DOTALL,
)
PLACE = re.compile(r"File \"(?P<file>[^\"]+)\", line (?P<line>\d+)")
# The end of a Python traceback: on lines of its own, or where SageMaker has joined the lines.
NAMED = r"(?P<error>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b(?:: .*)?)\Z"
ERRORS = (re.compile(rf"\A(?:.*\n)?{NAMED}", re.DOTALL), re.compile(rf"\A(?:.*\s)?{NAMED}", re.DOTALL))
NOT_OF_USER = ("site-packages/", "dist-packages/", "lib/python", "<frozen")
NO_SPACE = "No space left on device"
DISK_SIZE = "; write less, or free space: on AWS job.volume_size_gb is the size of the job's disk"
BY_SIGNAL = {
    signal.SIGSEGV: "segmentation fault: compiled code of the script, or of a package, used memory that is not its own",
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


def describe_script_error(reason: str) -> str | None:
    """One sentence for a failure reason of the toolkit; None for any other text, and for one that says no more."""
    found = TOOLKIT.search(reason)
    if found is None:
        return None
    code, message = int(found["code"]), _without_torchrun(found["message"].strip())
    error = next((match for pattern in ERRORS if (match := pattern.search(message))), None)
    if error is not None:
        what = " ".join(error["error"].split())
        size = DISK_SIZE if NO_SPACE in what else ""
        return f"{what}{_place(message)} (exit code {code}){size}"
    killed_by = _signal_of(code) or _signal_in(found["message"])
    if killed_by in BY_SIGNAL:
        last = f"; its last output: {' '.join(message.split())}" if message else ""
        kernel = OF_KERNEL.search(reason)
        return f"{kernel[0] if kernel else BY_SIGNAL[killed_by]} ({killed_by.name}, exit code {code}){last}"
    return None


def _without_torchrun(message: str) -> str:
    """torchrun's own traceback, and its lines about its processes, follow the script's output."""
    before, _, after = message.rpartition("Traceback (most recent call last):")
    of_script = before.strip() if "ChildFailedError" in after and before.strip() else message
    lines = TORCHRUN_LINE.search(of_script)
    return of_script[: lines.start()].strip() if lines else of_script


def _place(message: str) -> str:
    """The innermost line of the user's own code; of any code if the traceback's end names no other."""
    places = [(each["file"], each["line"]) for each in PLACE.finditer(message)]
    own = [each for each in places if not any(part in each[0] for part in NOT_OF_USER)]
    if not places:
        return ""
    file, line = (own or places)[-1]
    return f" ({PurePosixPath(file).name}, line {line})"


def _signal_in(message: str) -> signal.Signals | None:
    """The signal that ended the process which torchrun names last, as the cause; torchrun itself exits with 1."""
    found = TORCHRUN_SIGNAL.findall(message)
    return _signal_of(-int(found[-1])) if found else None


def _signal_of(code: int) -> signal.Signals | None:
    """A shell reports 128 + the signal, Python its negative."""
    number = -code if code < 0 else code - 128
    return signal.Signals(number) if number in {each.value for each in signal.Signals} else None
