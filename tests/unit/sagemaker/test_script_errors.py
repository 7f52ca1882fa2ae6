"""A failed script's reason begins with the user's own error and its line.

The scripts run here, as the parent of a shared job starts them: its record of a run has the end of
their output. What the training toolkit makes of a failure is in test_toolkit_failures.py; the few
texts below are SageMaker's own.
"""

import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sentences import Snapshot
from traindyno.core.jobs.journal_format import EXITED
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import RunEnd
from traindyno.sagemaker.failure_reasons import outcome_of, read_failure_reason

READER = "def read(rows):\n    {}\n"
MAIN = "from reader import read\n\nread([1])\n"
KILL = "import os\nos.kill(os.getpid(), {})\n"
CAUSES = [
    (
        "raise OSError(28, 'No space left on device', '/tmp/x')",
        Outcome.USER_CODE_ERROR,
        r"OSError: \[Errno 28\] No space left on device: '/tmp/x' \(reader.py, line 2\) "
        r"\(exit code 1\); .*job.volume_size_gb is the size of the job's disk",
    ),
    (
        "raise OSError(28, 'No space left on device', '/dev/shm/torch_1')",
        Outcome.USER_CODE_ERROR,
        r".*/dev/shm is full, the host's shared memory.*",
    ),
    (
        "raise RuntimeError('CUDA error: uncorrectable ECC error encountered')",
        Outcome.INTERNAL_ERROR,
        r".*a device of the host is faulty.*",
    ),
    (
        "raise RuntimeError('DataLoader worker (pid 4711) is killed by signal: Killed.')",
        Outcome.KILLED,
        r".*use fewer loader workers",
    ),
]


def end_of(folder: Path, script: str, reader: str = "pass") -> RunEnd:
    """The end of a script that imports a module with this failing line."""
    (folder / "train.py").write_text(script)
    (folder / "reader.py").write_text(READER.format(reader))
    ended = subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    code = ended.returncode
    return RunEnd(
        reason=EXITED,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        failure=ended.stdout or None,
        ended_at=0.0,
        own_seconds=1.0,
        place=1,
    )


def test_the_words_of_argparse_come_before_its_usage(tmp_path: Path) -> None:
    script = (
        "import argparse\n"
        "parser = argparse.ArgumentParser(prog='train.py')\n"
        "parser.add_argument('--hidden', type=int)\n"
        "parser.parse_args(['--hidden', '[500,'])\n"
    )
    error = "train.py: error: argument --hidden: invalid int value: '[500,' (exit code 2)"
    assert outcome_of(end_of(tmp_path, script)) == (Outcome.USER_CODE_ERROR, error)


@pytest.mark.parametrize(
    ("reader", "error"),
    [
        ("raise ValueError('the third batch is broken')", "ValueError: the third batch is broken"),
        ("return {}['labels']", "KeyError: 'labels'"),
        ("assert not rows", "AssertionError"),
        (
            "import urllib.error; raise urllib.error.URLError('no route to 10.0.0.1')",
            "urllib.error.URLError: <urlopen error no route to 10.0.0.1>",
        ),
        ("import nope", "ModuleNotFoundError: No module named 'nope'"),
        ("import json; json.loads('{')", "json.decoder.JSONDecodeError: Expecting property name"),
    ],
)
def test_the_users_error_comes_first_with_the_innermost_line_of_the_users_code(
    tmp_path: Path, reader: str, error: str
) -> None:
    meaning, message = outcome_of(end_of(tmp_path, MAIN, reader))
    assert meaning is Outcome.USER_CODE_ERROR
    assert message is not None
    assert message.startswith(error)
    assert message.endswith(" (reader.py, line 2) (exit code 1)")


def test_of_several_errors_the_last_one_counts(snapshot: Snapshot, tmp_path: Path) -> None:
    script = "from reader import read\ntry:\n    {}['a']\nexcept KeyError:\n    read([1])\n"
    _, message = outcome_of(end_of(tmp_path, script, "raise ValueError('b: Error: c')"))
    snapshot(message)


@pytest.mark.parametrize(
    ("number", "begin"),
    [
        (signal.SIGSEGV, "segmentation fault"),
        (signal.SIGBUS, "bus error"),
        (signal.SIGABRT, "aborted"),
    ],
)
def test_a_signal_is_named_in_words(tmp_path: Path, number: signal.Signals, begin: str) -> None:
    silent = outcome_of(end_of(tmp_path, KILL.format(int(number))))[1] or ""
    talking = f"print('step 7\\nloading', flush=True)\n{KILL.format(int(number))}"
    assert silent.startswith(begin)
    assert silent.endswith(f"exit code {128 + number})")
    expected = f"{silent}; its last output: step 7 loading"
    assert outcome_of(end_of(tmp_path, talking)) == (Outcome.USER_CODE_ERROR, expected)


def test_a_bare_reason_stays_whole(tmp_path: Path) -> None:
    meaning, message = outcome_of(
        end_of(tmp_path, "print('the end of a log')\nraise SystemExit(3)")
    )
    assert meaning is Outcome.USER_CODE_ERROR
    assert message is not None
    assert re.search('ExitCode 3 ErrorMessage "the end of a log', message)
    plain = "AlgorithmError: something, exit code: 1"
    assert read_failure_reason(plain) == (Outcome.USER_CODE_ERROR, plain)


def test_a_kill_stays_a_kill_and_says_whether_the_kernel_needed_memory(tmp_path: Path) -> None:
    end = end_of(tmp_path, f"print('step 7', flush=True)\n{KILL.format(9)}")
    meaning, message = outcome_of(end)
    assert meaning is Outcome.KILLED
    assert message is not None
    assert message.startswith("another program, ")
    assert message.endswith("(SIGKILL, exit code 137); its last output: step 7")
    meaning, message = outcome_of(replace(end, oom_kills=2))
    assert meaning is Outcome.OUT_OF_MEMORY
    assert (message or "").startswith("out of memory: the kernel killed 2 processes (SIGKILL, ")


def test_a_warning_is_no_cause(tmp_path: Path) -> None:
    warning = "import warnings\nwarnings.warn('foo', UserWarning)\n"
    killed = outcome_of(end_of(tmp_path, warning + KILL.format(11)))[1] or ""
    assert killed.startswith("segmentation fault")
    silent = outcome_of(end_of(tmp_path, warning + "raise SystemExit(1)\n"))[1] or ""
    assert "ExitCode 1 " in silent


@pytest.mark.parametrize(("reader", "outcome", "words"), CAUSES)
def test_causes_outside_of_the_code_say_the_remedy(
    tmp_path: Path, reader: str, outcome: Outcome, words: str
) -> None:
    meaning, message = outcome_of(end_of(tmp_path, MAIN, reader))
    assert meaning is outcome
    assert re.fullmatch(words, message or ""), message


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("ClientError: Artifact upload failed:Insufficient disk space", "job.volume_size_gb"),
        (
            "ClientError: Data download failed:No S3 objects found under S3 URL s3://bucket/data",
            "the script did not start: check the S3 addresses",
        ),
    ],
)
def test_sagemakers_own_words_have_a_hint(reason: str, words: str) -> None:
    meaning, message = read_failure_reason(reason)
    assert meaning is Outcome.USER_CODE_ERROR
    assert words in message


@pytest.mark.parametrize(
    "number", [signal.SIGHUP, signal.SIGINT, signal.SIGSEGV, signal.SIGTERM, signal.SIGUSR1]
)
@pytest.mark.parametrize(
    "form", ["AlgorithmError: , exit code: {}", "AlgorithmError: step 7, exit code: {}"]
)
def test_exit_codes_of_signals_are_explained_in_an_image_without_the_toolkit(
    number: signal.Signals, form: str
) -> None:
    meaning, message = read_failure_reason(form.format(128 + number))
    assert meaning is Outcome.USER_CODE_ERROR
    assert f"({number.name}, exit code {128 + number})" in message
    assert message.endswith("; its last output: step 7") == ("step 7" in form)
