"""Shared jobs that really run: their parent starts each run, and what ends the job loses the run in
progress only.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.local.aws_double import AwsDouble
from tests.local.jobs import BUCKET, client, eventually, wait_until
from tests.local.running_service import RunningService, start_service
from tests.local.shared_job import LAB, SharedJob
from tests.local.test_process_engine import is_alive
from tests.unit.suites import script_document
from traindyno import bundle
from traindyno.core.jobs.journal_format import STOPPED
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.sagemaker.failure_reasons import outcome_of

pytestmark = [pytest.mark.local, pytest.mark.nightly]
STEPS = 20
SCRIPT = f"""
import argparse, os, pathlib, signal, subprocess, sys, time

given = argparse.ArgumentParser()
given.add_argument("--does")
given.add_argument("--samples", type=int, default=0)
does, samples = vars(given.parse_known_args()[0]).values()
held = bytearray(samples * 2**27)
assert pathlib.Path(os.environ["SM_CHANNEL_WORDS"], "a.txt").read_text() == "words"
if does in ("log", "slow"):
    from traindyno.callbacks import step_log

    step_log.independent()
    for number in range({STEPS}):
        with step_log.step(samples=8):
            time.sleep(0.05 if does == "log" else 0.5)
if does in ("brief", "fill", "stand", "die"):
    from traindyno.callbacks import step_log

    print("does", does, flush=True)
    for number in range({STEPS} if does == "brief" else 1):
        with step_log.step(samples=8):
            time.sleep(0.001)
kept = []
while does == "fill":
    kept.append(bytearray(2**26))
if does == "stand":
    time.sleep(600)
if does == "die":
    os.kill(os.getpid(), signal.SIGKILL)
if does == "fail":
    raise ValueError("the third batch is broken")
if does == "hang":
    stops = pathlib.Path(os.environ["TRAINDYNO_STEP_LOG_DIRECTORY"]).parent / "stops"
    stops.parent.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: stops.open("a").write("SIGTERM "))
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = subprocess.Popen(sleeper, start_new_session=True)
    pids = pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "pids")
    pids.write_text(f"{{os.getpid()}} {{child.pid}}")
    while not stops.exists():
        time.sleep(0.1)
    time.sleep(1)
"""


@pytest.fixture(scope="module")
def service(aws: AwsDouble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A stop gives the parent some seconds, as SageMaker does."""
    options = ("--checkpoint-sync-seconds", "0.2", "--stop-grace-seconds", "60")
    memory = ("--local-memory-gib", "2")
    with start_service(
        tmp_path_factory.mktemp("state"), aws.endpoint, *options, *memory
    ) as running:
        yield running


@pytest.fixture
def sagemaker(service: RunningService) -> Any:
    return client("sagemaker", service.endpoint)


def job_of(
    aws: AwsDouble, folder: Path, job_id: str, does: Sequence[str], **changes: Any
) -> SharedJob:
    """Runs of a script, one for each word that it is told, in this order."""
    (folder / "train.py").write_text(SCRIPT)
    aws.objects[f"{BUCKET}/words/a.txt"] = b"words"
    workload = {
        **script_document()["workload"],
        "source": LAB.source_s3_uri,
        "hyperparameters": {"measurement": {"max_steps": STEPS}},
        "channels": {"words": f"s3://{BUCKET}/words/"},
    }
    matrix = {"instance": ["local.cpu"], "hyperparameters.does": sorted({*does})}
    given = {
        "workload": workload,
        "matrix": matrix,
        "measurement": {"trials": len(does)},
        **changes,
    }
    suite = parse_suite(script_document(**given))
    runs = trial_runs("execution-1", suite.cells, range(1, len(does) + 1))
    by_word = {(run.cell.hyperparameters["does"], run.trial): run for run in runs}
    carried = [by_word[word, number] for number, word in enumerate(does, start=1)]
    return SharedJob(aws, suite, carried, job_id, bundle.pack(bundle.script_files(folder)))


def test_runs_of_two_hosts_follow_each_other_and_a_failing_run_fails_alone(
    aws: AwsDouble, sagemaker: Any, tmp_path: Path
) -> None:
    two_hosts = {"instance_count": 2, "strategy": "ddp"}
    shared = job_of(aws, tmp_path, "j2-1", ["fail", "log"], training=two_hosts)
    described = shared.run(sagemaker)
    assert described["TrainingJobStatus"] == "Completed", described.get("FailureReason")
    journal = shared.journal(described)
    assert list(journal.began) == shared.run_ids
    outcomes = dict(zip(shared.run_ids, [Outcome.USER_CODE_ERROR, Outcome.COMPLETED], strict=True))
    assert shared.outcomes(described) == outcomes
    assert "ValueError: the third batch is broken" in str(
        outcome_of(journal.ends[shared.run_ids[0]])[1]
    )
    assert shared.logged_steps(shared.run_ids[1]) == [STEPS, STEPS]


def test_of_twelve_runs_those_without_memory_hung_or_killed_end_alone(
    aws: AwsDouble, sagemaker: Any, tmp_path: Path
) -> None:
    does = [*["brief"] * 2, "fill", *["brief"] * 3, "stand", "die", *["brief"] * 4]
    limits = {**script_document()["limits"], "max_run_seconds": 20}
    shared = job_of(aws, tmp_path, "j12-1", does, limits=limits, training={"strategy": "single"})
    described = shared.run(sagemaker)
    assert described["TrainingJobStatus"] == "Completed", described.get("FailureReason")
    journal = shared.journal(described)
    ends = [journal.ends[run_id] for run_id in shared.run_ids]
    assert [end.place for end in ends] == [*range(1, 13)]
    told = {word: outcome_of(end) for word, end in zip(does, ends, strict=True)}
    assert [outcome_of(end) for word, end in zip(does, ends, strict=True) if word == "brief"] == [
        told["brief"]
    ] * 9
    assert {word: outcome for word, (outcome, _) in told.items()} == {
        "brief": Outcome.COMPLETED,
        "fill": Outcome.OUT_OF_MEMORY,
        "stand": Outcome.TIMED_OUT,
        "die": Outcome.KILLED,
    }
    messages = {word: str(message) for word, (_, message) in told.items()}
    assert re.fullmatch(
        r"rank 0: MemoryError: .* \(train.py, line \d+\); .*allocate 2.0 GiB", messages["fill"]
    )
    assert re.fullmatch(r"still running after \d+ seconds", messages["stand"])
    assert re.fullmatch(r"another program, .*SIGKILL.*; its last output: does die", messages["die"])
    # The first step is in the log, although the script had no time to end it.
    steps = {run_id: shared.logged_steps(run_id) for run_id in shared.run_ids}
    assert list(steps.values()) == [[STEPS if word == "brief" else 1] for word in does]
    lines = [
        line
        for stream, line in aws.log_lines
        if stream.startswith(f"{described['TrainingJobName']}/")
    ]
    for run_id, word in zip(shared.run_ids, does, strict=True):
        assert [line for line in lines if line == f"[{run_id}] does {word}"] != []


def test_a_hopeless_run_of_a_race_ends_early_after_a_throw_away_run(
    aws: AwsDouble, sagemaker: Any, tmp_path: Path
) -> None:
    shared = job_of(aws, tmp_path, "j2-5", ["log", "slow"], search="race")
    described = shared.run(sagemaker)
    assert described["TrainingJobStatus"] == "Completed", described.get("FailureReason")
    journal = shared.journal(described)
    (fast, slow) = shared.run_ids
    assert shared.outcomes(described) == {fast: Outcome.COMPLETED, slow: Outcome.OUTPACED}
    bound = journal.ends[slow].bound
    assert bound is not None
    assert bound.by == fast
    assert bound.least_ratio > 1
    assert shared.logged_steps(fast) == [STEPS]
    assert bound.steps + 2 <= shared.logged_steps(slow)[0] < STEPS
    assert 0 < journal.warm_up_seconds <= (journal.start_seconds or 0)
    assert {key.partition("/")[0] for key in shared.files()} == {fast, slow, "journal"}


@pytest.mark.parametrize("stops", [None, "none"], ids=["sigterm", "no-sigterm"])
def test_a_stopped_job_keeps_ended_runs_and_leaves_the_rest_to_the_next_attempt(
    aws: AwsDouble, service: RunningService, sagemaker: Any, tmp_path: Path, stops: str | None
) -> None:
    """An image whose entry point passes no SIGTERM on loses the journal's last lines, and no end of
    a run.
    """
    service.administer("/_local/faults", {"stops": stops})
    shared = job_of(aws, tmp_path, "j2-9" if stops else "j2-2", ["pass", "hang", "pass"])
    request = shared.request()
    sagemaker.create_training_job(**request)
    output = (
        service.state_folder
        / "jobs"
        / request["TrainingJobName"]
        / "algo-1"
        / "ml"
        / "output"
        / "data"
    )
    pids = output / shared.run_ids[1] / "pids"
    eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    # The job's limit counts from its begin, which the parent sees in the age of its configuration.
    given = output.parent.parent / "input"
    written = [
        path.lstat().st_mtime_ns
        for path in (given / "config" / "resourceconfig.json", given / "data" / "words")
    ]
    assert written == sorted(written)
    processes = [int(word) for word in pids.read_text().split()]
    sagemaker.stop_training_job(TrainingJobName=request["TrainingJobName"])
    described = wait_until(
        sagemaker, request["TrainingJobName"], seconds=120
    )  # a stop has 60 s of grace
    assert described["TrainingJobStatus"] == "Stopped"
    assert not any(map(is_alive, processes))
    journal = shared.journal(described)
    assert shared.outcomes(described) == {shared.run_ids[0]: Outcome.COMPLETED}
    # torchrun passes on the signal that its processes have already.
    heard = shared.files().get(f"{shared.run_ids[1]}/stops", b"").split()
    assert set(heard) == (set() if stops else {b"SIGTERM"})
    assert journal.left == ({} if stops else dict.fromkeys(shared.run_ids[1:], STOPPED))


def test_a_job_without_its_instances_goes_on_with_the_run_in_progress(
    aws: AwsDouble, service: RunningService, sagemaker: Any, tmp_path: Path
) -> None:
    fault = {"name_contains": "j2-3", "fault": "spot_interruption"}
    service.administer("/_local/faults", {"seed": 4, "spot_notice_fraction": 0, "named": [fault]})
    shared = job_of(aws, tmp_path, "j2-3", ["log", "log"], purchase="spot")
    described = shared.run(sagemaker)
    assert described["TrainingJobStatus"] == "Completed", described.get("FailureReason")
    assert [step["Status"] for step in described["SecondaryStatusTransitions"]].count(
        "Interrupted"
    ) == 1
    journal = shared.journal(described)
    assert set(shared.outcomes(described).values()) == {Outcome.COMPLETED}
    assert list(journal.interrupted) == shared.run_ids[1:]
    assert list(journal.began) == shared.run_ids
    assert [shared.logged_steps(run_id) for run_id in shared.run_ids] == [[STEPS]] * 2


def test_the_largest_batch_of_a_script_is_found_under_the_types_memory(
    aws: AwsDouble, sagemaker: Any, tmp_path: Path
) -> None:
    """The service limits a process to 2 GiB.

    A sample takes 128 MiB, so that 15 fit beside the interpreter.
    """
    searched = {"search": "largest", "argument": "samples", "begin": 12}
    training = {"strategy": "single", "batch_size_per_device": searched}
    shared = job_of(aws, tmp_path, "j2-6", ["log"], training=training)
    described = shared.run(sagemaker)
    assert described["TrainingJobStatus"] == "Completed", described.get("FailureReason")
    journal = shared.journal(described)
    (run_id,) = shared.run_ids
    assert shared.outcomes(described) == {run_id: Outcome.COMPLETED}
    finding = journal.ends[run_id].batch
    assert finding is not None
    assert finding.batch == 15
    assert [(probe.batch, probe.fits) for probe in finding.probes] == [
        (12, True),
        (24, False),
        (18, False),
        (15, True),
        (16, False),
    ]
    assert all(probe.samples_per_second for probe in finding.probes if probe.fits)
    assert shared.logged_steps(run_id) == [STEPS]
    assert {key.partition("/")[0] for key in shared.files()} == {run_id, "journal"}
