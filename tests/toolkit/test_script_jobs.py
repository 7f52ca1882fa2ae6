"""What AWS's training toolkit does with a script's job: its arguments, entry points and failures.

The failure files are recorded in tests/data/toolkit_failures.json, on which `make test` holds
their classification: tests/unit/sagemaker/test_toolkit_failures.py.
"""

import json
import os
import re
import signal
import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.container import TOOLKITS, Container, first_process, why_no_container
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.sagemaker.toolkit_failures import (
    FAILURES,
    RECORDS,
    SILENT,
    SILENT_LOG,
    without_places,
)
from tests.unit.suites import script_document
from traindyno.bundle import script_files
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.request import build_training_job_request

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(why_no_container() is not None, reason=str(why_no_container())),
]
ISOLATED = replace(SETTINGS, jobs=LabJobs(isolates_network=True))
SAY_ARGUMENTS = "import json, sys; json.dump(sys.argv[1:], open('/opt/ml/output/arguments', 'w'))"
READ_BY_SHELLS = " ;&|<>()$`\"'\\*?[]#~\n"
PLAIN = string.ascii_letters + string.digits + "_-+=:,./@%^éß"
STOPPABLE = """
import signal, sys, time
def stop(*_):
    open("/opt/ml/checkpoints/heard", "w").write("SIGTERM")
    sys.exit(1)
signal.signal(signal.SIGTERM, stop)
open("/opt/ml/checkpoints/began", "w").write("yes")
time.sleep(60)
"""


def script_job(
    folder: Path,
    script: str,
    *,
    toolkit: str,
    entry_point: str = "train.py",
    strategy: str = "single",
    program: str | None = None,
    **workload: Any,
) -> Container:
    """The container of a script; the request may name another program than the suite's entry point,
    unchecked.
    """
    source = folder / "source"
    path = source / (program or entry_point)
    path.parent.mkdir(parents=True)
    path.write_text(script)
    document = script_document(
        matrix={"instance": ["ml.m5.large"]}, training={"strategy": strategy}
    )
    document["workload"] |= {"entry_point": entry_point, "hyperparameters": {}, **workload}
    suite = parse_suite(document)
    (run,) = trial_runs("execution-1", suite.cells, [1])
    request = build_training_job_request(run, suite, attempt=1, settings=ISOLATED)
    if program:
        request["HyperParameters"]["sagemaker_program"] = json.dumps(program)
    files = script_files(source, allowed=[path])
    return Container(folder=folder / "job", request=request, source=files, toolkit=toolkit)


@pytest.mark.parametrize("toolkit", TOOLKITS)
@pytest.mark.parametrize("name", FAILURES)
def test_each_kind_of_failure_is_recorded(tmp_path: Path, toolkit: str, name: str) -> None:
    failure = FAILURES[name]
    job = script_job(tmp_path, failure.script, toolkit=toolkit, strategy=failure.strategy)
    record(toolkit, name, job.failure_reason(job.run()))
    if name == SILENT:
        frame = "=" * 20
        begin = job.log.index("step 7\n")
        end = job.log.rindex(frame) + len(frame)
        record(toolkit, SILENT_LOG, job.log[begin:end])


def record(toolkit: str, name: str, reason: str) -> None:
    """With ``RECORD=1`` writes the record, with which the reason is compared."""
    reason_without_places = without_places(reason)
    recorded = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    if os.environ.get("RECORD"):
        recorded.setdefault(toolkit, {})[name] = reason_without_places
        RECORDS.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    assert unbroken(reason_without_places) == unbroken(recorded[toolkit][name])


def unbroken(text: str) -> str:
    """The toolkit begins a line, and may drop a colon, where a read of the output ended: on a busy
    machine within an error.
    """
    return re.sub(r"[\s:]+", "", text)


@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_accepted_arguments_arrive_unchanged(tmp_path: Path, toolkit: str) -> None:
    job = script_job(
        tmp_path, SAY_ARGUMENTS, toolkit=toolkit, hyperparameters={"text": PLAIN, "n": 1.5}
    )
    assert job.run() == 0, job.log
    arguments = json.loads((job.ml / "output/arguments").read_text())
    assert arguments == ["-n", "1.5", "--text", PLAIN]


@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_only_the_toolkit_with_a_shell_changes_an_argument(tmp_path: Path, toolkit: str) -> None:
    """A suite may meet either one, because the bases' tags move."""
    job = script_job(tmp_path, SAY_ARGUMENTS, toolkit=toolkit)
    given = {f"x{number}": f"a{character}b" for number, character in enumerate(READ_BY_SHELLS)}
    path = job.ml / "input/config/hyperparameters.json"
    written = {name: json.dumps(value) for name, value in given.items()}
    path.write_text(json.dumps({**json.loads(path.read_text()), **written}))
    job.run()
    expected = [word for name in sorted(given) for word in (f"--{name}", given[name])]
    arrived = job.ml / "output/arguments"
    is_unchanged = arrived.exists() and json.loads(arrived.read_text()) == expected
    assert is_unchanged == (toolkit == "5.1.4")


@pytest.mark.parametrize("toolkit", TOOLKITS)
@pytest.mark.parametrize("name", ["train.py", "a/b-c.py", "_x+1.py", ".hidden/a.py"])
def test_accepted_entry_points_are_started(tmp_path: Path, toolkit: str, name: str) -> None:
    job = script_job(tmp_path, SAY_ARGUMENTS, toolkit=toolkit, entry_point=name)
    assert job.run() == 0, job.log


@pytest.mark.parametrize("name", ["./train.py", "my train.py", "a@b.py", "-x.py"])
def test_refused_entry_points_are_refused_by_the_toolkit(tmp_path: Path, name: str) -> None:
    job = script_job(tmp_path, SAY_ARGUMENTS, toolkit="5.1.4", program=name)
    assert job.run() != 0
    assert "entry point" in job.failure


@pytest.mark.parametrize("toolkit", TOOLKITS)
@pytest.mark.parametrize("strategy", ["single", "ddp"])
def test_sigterm_reaches_a_script_and_the_failure_file_says_so(
    tmp_path: Path, toolkit: str, strategy: str
) -> None:
    job = script_job(tmp_path, STOPPABLE, toolkit=toolkit, strategy=strategy)
    with job.started() as process:
        job.wait_until((job.ml / "checkpoints/began").exists)
        os.kill(first_process(process), signal.SIGTERM)
        assert process.wait(60) != 0
    assert (job.ml / "checkpoints/heard").exists()
    assert job.failure.startswith("traindyno-outcome: stopped_by_user: ")
