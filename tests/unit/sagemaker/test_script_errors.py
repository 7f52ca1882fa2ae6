"""A failed script's reason begins with the user's own error and its line; the toolkit's wrapper is
left out.
"""

import signal

import pytest

from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.line import failure_text
from traindyno.sagemaker.failure_reasons import read_failure_reason

TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/opt/ml/code/train.py", line 41, in <module>\n    main()\n'
    '  File "/opt/ml/code/data/reader.py", line 7, in read\n    return torch.tensor(rows)\n'
    '  File "/opt/conda/lib/python3.11/site-packages/torch/functional.py", line 422, in tensor\n'
)


def wrapped(message: str, code: int = 1, joined: bool = False) -> str:
    """As the training toolkit writes it; SageMaker's copy can have spaces for the ends of lines."""
    text = (
        "AlgorithmError: ExecuteUserScriptError:\n"
        f"ExitCode {code}\n"
        f'ErrorMessage "{message}"\n'
        'Command "python3 a.py"'
    )
    return (" ".join(text.split()) if joined else text) + f", exit code: {code}"


@pytest.mark.parametrize("joined", [False, True])
def test_the_words_of_argparse_come_before_its_usage(joined: bool) -> None:
    error = "train.py: error: argument --hidden: invalid int value: '[500,'"
    _, message = read_failure_reason(
        wrapped(f"usage: train.py [-h] [--hidden HIDDEN]\n{error}", 2, joined)
    )
    assert message == f"{error} (exit code 2)"


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        "ValueError: the third batch is broken",
        "torch.linalg.LinAlgError: singular",
        "KeyError: 'labels'",
        "AssertionError",
        "requests.exceptions.ConnectionError: no route to 10.0.0.1",
    ],
)
def test_the_users_error_comes_first_with_its_own_line(error: str, joined: bool) -> None:
    meaning, message = read_failure_reason(wrapped(TRACEBACK + error, joined=joined))
    assert meaning is Outcome.USER_CODE_ERROR
    assert message == f"{error} (reader.py, line 7) (exit code 1)"


def test_of_several_errors_the_last_one_counts() -> None:
    first, second = f"{TRACEBACK}KeyError: 'a'", f"{TRACEBACK}ValueError: b: Error: c"
    chain = (
        f"{first}\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        f"{second}"
    )
    _, message = read_failure_reason(wrapped(chain))
    assert message == "ValueError: b: Error: c (reader.py, line 7) (exit code 1)"


@pytest.mark.parametrize(
    ("code", "begin"),
    [
        (139, "segmentation fault"),
        (-11, "segmentation fault"),
        (135, "bus error"),
        (134, "aborted"),
    ],
)
def test_a_signal_is_named_in_words(code: int, begin: str) -> None:
    _, silent = read_failure_reason(wrapped("", code))
    _, talking = read_failure_reason(wrapped("step 7\nloading", code))
    assert silent.startswith(begin)
    assert silent.endswith(f"exit code {code})")
    assert talking == f"{silent}; its last output: step 7 loading"


@pytest.mark.parametrize(
    "reason",
    [wrapped("the end of a log", 3), wrapped("", 3), "AlgorithmError: something, exit code: 1"],
)
def test_a_reason_that_says_no_more_stays_whole(reason: str) -> None:
    assert read_failure_reason(reason) == (Outcome.USER_CODE_ERROR, " ".join(reason.split()))


def test_a_kill_stays_a_kill_and_shows_the_last_output() -> None:
    meaning, message = read_failure_reason(wrapped("step 7", 137))
    assert meaning is Outcome.KILLED
    assert message.startswith("another program, ")
    assert message.endswith("(SIGKILL, exit code 137); its last output: step 7")


TORCHRUN_REPORT = """Traceback (most recent call last):
  File "/opt/conda/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  exitcode  : -15 (pid: 14116)
  traceback : Signal 15 (SIGTERM) received by PID 14116
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  exitcode  : {code} (pid: 14115)
  traceback : {traceback}
============================================================"""
TORCHRUN_LINES = (
    (
        "E1123 19:20:18.196000 14014 torch/distributed/elastic/multiprocessing/api.py:984] "
        "failed (exitcode: -9)"
    ),
    (
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 "
        "(pid: 14115) of binary"
    ),
)


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("line", TORCHRUN_LINES)
def test_torchruns_report_of_a_signal_is_read_and_left_out(line: str, joined: bool) -> None:
    report = (
        f"{line}\n"
        f"{TORCHRUN_REPORT.format(code=-9, traceback='Signal 9 (SIGKILL) received by PID 14115')}"
    )
    killed = "another program, a person or the kernel ended the process (SIGKILL, exit code 1)"
    for output, shown in (("step 7\n", f"{killed}; its last output: step 7"), ("", killed)):
        assert read_failure_reason(wrapped(output + report, joined=joined)) == (
            Outcome.KILLED,
            shown,
        )


@pytest.mark.parametrize("line", TORCHRUN_LINES)
def test_an_error_before_torchruns_report_is_the_scripts(line: str) -> None:
    report = (
        f"{line}\n"
        f"{TORCHRUN_REPORT.format(code=1, traceback='To enable traceback see: https://pytorch.org')}"
    )
    _, message = read_failure_reason(wrapped(f"{TRACEBACK}ValueError: broken\n{report}"))
    assert message == "ValueError: broken (reader.py, line 7) (exit code 1)"


def test_a_kill_by_the_kernel_for_memory_says_so() -> None:
    kernel = " out of memory: the kernel killed 2 processes while the job ran, exit code: 137"
    meaning, message = read_failure_reason(
        wrapped("step 7", 137).replace(", exit code: 137", kernel)
    )
    assert meaning is Outcome.OUT_OF_MEMORY
    assert message.startswith("out of memory: the kernel killed 2 processes (SIGKILL, ")


def test_a_warning_is_no_cause() -> None:
    warned = "/opt/ml/code/x.py:12: UserWarning: foo\n  warn()"
    assert read_failure_reason(wrapped(warned, -11))[1].startswith("segmentation fault")
    assert "ExitCode 1 " in read_failure_reason(wrapped("FutureWarning: old\nneeds a GPU"))[1]


def test_torchruns_own_error_is_not_the_users() -> None:
    torchrun = (
        "Traceback (most recent call last):\n  File "
        '"/opt/conda/bin/torchrun", line 8, in <module>\n'
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
        "\n====\ntrain.py FAILED\n"
    )
    _, message = read_failure_reason(
        wrapped(f"{TRACEBACK}ModuleNotFoundError: No module named 'nope'\n{torchrun}")
    )
    assert (
        message == "ModuleNotFoundError: No module named 'nope' (reader.py, line 7) (exit code 1)"
    )


def test_a_full_disk_is_told_with_the_setting_of_its_size() -> None:
    _, message = read_failure_reason(
        wrapped(f"{TRACEBACK}OSError: [Errno 28] No space left on device: '/tmp/x'")
    )
    assert message.startswith(
        "OSError: [Errno 28] No space left on device: '/tmp/x' (reader.py, line 7) (exit code 1); "
    )
    assert message.endswith("job.volume_size_gb is the size of the job's disk")


HINTS = [
    (
        "ClientError: Artifact upload failed:Insufficient disk space",
        Outcome.USER_CODE_ERROR,
        "job.volume_size_gb",
    ),
    (
        "ClientError: Data download failed:No S3 objects found under S3 URL s3://bucket/data",
        Outcome.USER_CODE_ERROR,
        "the script did not start: check the S3 addresses",
    ),
    (
        wrapped(
            f"{TRACEBACK}torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered"
        ),
        Outcome.INTERNAL_ERROR,
        "a device of the host is faulty",
    ),
    (
        wrapped(
            f"{TRACEBACK}RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed."
        ),
        Outcome.KILLED,
        "use fewer loader workers",
    ),
    (
        wrapped(f"{TRACEBACK}OSError: [Errno 28] No space left on device: '/dev/shm/torch_1'"),
        Outcome.USER_CODE_ERROR,
        "/dev/shm is full, the host's shared memory",
    ),
    *(
        (reason, Outcome.USER_CODE_ERROR, words)
        for error, words in (
            (
                "RuntimeError: DataLoader worker (pid(s) 7, 8) is killed by signal: Bus error. It "
                "is possible that dataloader's workers are out of shared memory.",
                "/dev/shm is full, the host's shared memory: use fewer loader workers",
            ),
            (
                "OSError: You are trying to access a gated repo. Make sure to have access to it at "
                "https://huggingface.co/meta-llama/Llama-3.2-1B. 401 Client Error.",
                "workload.hub_token_secret of a built-in task names a secret",
            ),
            (
                "huggingface_hub.errors.HfHubHTTPError: 403 Client Error: Forbidden for url: "
                "http://127.0.0.1:9/meta-llama/Llama-3.2-1B/resolve/main/config.json",
                "a script sets HF_TOKEN from one",
            ),
        )
        for reason in (wrapped(TRACEBACK + error), failure_text("user_code_error", error))
    ),
]


@pytest.mark.parametrize(("reason", "outcome", "words"), HINTS)
def test_causes_outside_of_the_code_say_what_to_do(
    reason: str, outcome: Outcome, words: str
) -> None:
    meaning, message = read_failure_reason(reason)
    assert meaning is outcome
    assert words in message
    assert ("job.volume_size_gb" in message) == ("Insufficient disk" in reason)


@pytest.mark.parametrize(
    "number", [signal.SIGHUP, signal.SIGINT, signal.SIGSEGV, signal.SIGTERM, signal.SIGUSR1]
)
@pytest.mark.parametrize(
    "form", ["AlgorithmError: , exit code: {}", "AlgorithmError: step 7, exit code: {}"]
)
def test_exit_codes_of_signals_are_explained_without_the_toolkit_too(
    number: signal.Signals, form: str
) -> None:
    meaning, message = read_failure_reason(form.format(128 + number))
    assert meaning is Outcome.USER_CODE_ERROR
    assert f"({number.name}, exit code {128 + number})" in message
    assert message.endswith("; its last output: step 7") == ("step 7" in form)
