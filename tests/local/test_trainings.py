"""A script's whole workload is trained with the recommended cell in a local cloud: stopped,
interrupted, and in a chain of jobs, as `traindyno train` says.
"""

import json
import os
import random
import re
import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
import yaml

from localcloud.cloud import environment_of
from tests.local.chaos_lab import ENDED, ChaosLab, killed_functions
from tests.local.checkpointed import EVERY, SCRIPT, losses_of_script
from tests.local.forked_programs import REPO_ROOT
from tests.local.jobs import eventually
from tests.local.local_lab import LocalLab, script_suite
from tests.local.oracle import check_ended, check_paid, find_strays, gather
from tests.nightly import NIGHTLY
from traindyno.api.lab_target import Lab
from traindyno.aws.account import account_of
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult, parse_run_result
from traindyno.core.s3_keys import results_prefix, saved_model_key
from traindyno.sagemaker.job_names import execution_digest
from traindyno.slices.training.lab import plan_from_verdict, start_training

pytestmark = [pytest.mark.local, pytest.mark.timeout(1200)]
# TRAINDYNO_WHOLE_QUICKSTART=1: the page's own suite, which takes eight minutes on a busy machine
WHOLE = bool(os.environ.get("TRAINDYNO_WHOLE_QUICKSTART"))
SPOT = {"spot_interruption_fraction": 1.0, "spot_interruptions": 1, "spot_notice_fraction": 0.5}
LOGGED_STEP = re.compile(r'"kind": ?"step".*?"step": ?(\d+)')
STEPS = 180  # a result keeps each loss of so few
# A shortage of instances, after which a minute passes, is for the nightly seeds.
CHAOS = {
    "capacity_error_fraction": 0.1 if NIGHTLY else 0.0,
    "internal_error_fraction": 0.1,
    "spot_interruption_fraction": 0.7,
    "spot_interruptions": 2,
    "spot_notice_fraction": 0.5,
    "throttling_fraction": 0.05,
    "duplicated_event_fraction": 0.3,
    "late_event_fraction": 0.3,
    "late_event_seconds": 1.5,
    "lost_event_fraction": 0.3,
}
THROTTLED_SHARE = 0.03
# A job of 10 s may be billed for 490 s, $0.01362: beside it there is room for less than a minute of
# jobs before.
TIGHT_USD = Decimal("0.0143")
ROOMY_USD = Decimal(1)
PAGE = (REPO_ROOT / "docs" / "from-verdict-to-model.md").read_text()
COMMANDS = re.findall(
    r"^    traindyno +(.*)$",
    PAGE.partition("<!-- commands: run by tests/local/test_trainings.py -->")[2].partition(
        "<!-- end -->"
    )[0],
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def measured(lab: LocalLab) -> Iterator[str]:
    """The execution whose verdict is trained."""
    suite = script_suite(
        lab.write_script("trained", SCRIPT),
        {"hyperparameters.delay": [0.04, 0.1]},
        workload={"examples": 8 * STEPS, "hyperparameters": {"steps": 30}},
    )
    lab.run_suite("measured", suite)
    yield "measured"
    lab.administer("/_local/faults", {})


def result_of(lab: LocalLab, execution: str) -> RunResult:
    s3 = lab.client("s3")
    bucket = lab.deployment().bucket
    (content,) = s3.list_objects_v2(Bucket=bucket, Prefix=results_prefix(execution))["Contents"]
    return parse_run_result(
        json.loads(s3.get_object(Bucket=bucket, Key=content["Key"])["Body"].read())
    )


def model_file(lab: LocalLab, execution: str, name: str) -> bytes:
    path = lab.folder / "model.tar.gz"
    result = result_of(lab, execution)
    place = (execution, result.run.run_id, result.attempts[-1].job_name)
    key = saved_model_key(*place, is_kept=True)
    lab.client("s3").download_file(lab.deployment().bucket, key, str(path))
    with tarfile.open(path) as archive:
        member = archive.extractfile(
            next(
                name_in_archive
                for name_in_archive in archive.getnames()
                if name_in_archive.endswith(name)
            )
        )
        assert member is not None
        return member.read()


def losses_of(result: RunResult) -> dict[int, float]:
    assert result.measured is not None
    return {point.step: point.loss for point in result.measured.loss.points}


def stop_after(lab: LocalLab, execution: str, step: int) -> None:
    """Stops it when this step is in a log in S3."""
    eventually(
        lambda: max((last for _, last in logged_starts(lab, execution)), default=0) >= step,
        600,
        0.2,
    )
    lab.succeed("stop", execution, "--local")


@pytest.fixture(scope="module")
def whole(lab: LocalLab, measured: str) -> RunResult:
    """Never interrupted, and all of its steps in one job."""
    answer = lab.succeed("train", measured, "--set", f"steps={STEPS}", "--name", "whole", "--local")
    assert "projected: " in answer.errors
    assert "serve it with" in answer.errors
    card = (lab.folder / "reports" / "whole.md").read_text()
    for words in (
        "license: unknown",
        "| time | ",
        f"{8 * STEPS:,} examples",
        "- code: `s3://",
        "execution measured",
    ):
        assert words in card
    lab.traindyno("report", "whole", "--local", "--output", "trained")
    left = json.loads((lab.folder / "trained" / "model.json").read_text())
    assert left == json.loads(model_file(lab, "whole", "model.json"))
    result = result_of(lab, "whole")
    assert [attempt.outcome for attempt in result.attempts] == ["completed"]
    assert result.run.cell.hyperparameters == {"delay": 0.04, "steps": STEPS}
    assert sorted(losses_of(result)) == list(range(1, STEPS + 1))
    return result


def test_a_stopped_and_interrupted_training_equals_an_undisturbed_one(
    lab: LocalLab, measured: str, whole: RunResult
) -> None:
    lab.administer(
        "/_local/faults", {"seed": 5, "spot_interruption_fraction": 1.0, "spot_interruptions": 1}
    )
    lab.succeed(
        "train",
        measured,
        "--set",
        f"steps={STEPS}",
        "--spot",
        "--name",
        "cut",
        "--no-wait",
        "--local",
    )
    stop_after(lab, "cut", 40)
    lab.succeed("train", "--resume", "cut", "--no-wait", "--local")
    assert lab.traindyno("train", "--resume", "cut", "--local").status == 2, "it is still running"
    stop_after(lab, "cut-2", 80)
    folders = {name: lab.folder / f"model-of-{name}" for name in ("train", "watch", "report")}
    ended = lab.succeed("train", "--resume", "cut", "--local", "--output", str(folders["train"]))
    for command in ("watch", "report"):
        lab.succeed(command, "cut-3", "--local", "--output", str(folders[command]))
    result = result_of(lab, "cut-3")
    assert losses_of(result) == losses_of(whole)
    assert "trained/cut-3/" in ended.output
    assert json.loads(model_file(lab, "cut-3", "model.json")) == {
        "step": STEPS,
        "value": losses_of(whole)[STEPS],
    }
    for folder in folders.values():
        assert (folder / "model.json").read_bytes() == model_file(lab, "cut-3", "model.json")
    card = (folders["train"] / "cut.md").read_text()
    assert card.count("| stopped_by_user |") == 2
    over = lab.traindyno("train", "--resume", "cut", "--local")
    assert over.status == 1
    assert "has trained the whole workload" in over.errors


def start_chained(lab: LocalLab, name: str, measured: str, is_spot: bool, **limits: Any) -> None:
    """With jobs that are shorter than `train` makes them."""
    with account_of(environment_of(lab.home)):
        target = Lab(local=True).find()
        suite, training = plan_from_verdict(
            target,
            measured,
            cell=None,
            name=name,
            max_usd=None,
            is_spot=is_spot,
            changes={"steps": STEPS, "delay": 0.1},
            say=print,
        )
        chosen = replace(suite.limits, max_hours=Decimal(10), max_job_seconds=10, **limits)
        start_training(target, replace(suite, limits=chosen), training)


def test_a_training_longer_than_its_job_goes_on_in_the_next_one(
    lab: LocalLab, measured: str, whole: RunResult
) -> None:
    lab.administer("/_local/faults", {})
    start_chained(lab, "chained", measured, is_spot=False, max_usd=Decimal(1))
    lab.succeed("watch", "chained", "--local")
    result = result_of(lab, "chained")
    *before, last = [(attempt.outcome, attempt.error) for attempt in result.attempts]
    assert before
    assert set(before) == {(None, "JobTimeUsed")}
    assert last == ("completed", None)
    assert losses_of(result) == losses_of(whole)


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 13))]
)
def test_a_chain_under_faults_of_every_kind_loses_no_step_and_no_cent(
    lab: LocalLab, measured: str, seed: int
) -> None:
    """Every third seed has a tight cap, and every fourth one is stopped and resumed once."""
    chaos = ChaosLab(lab, ())
    name = f"chaos-{seed}"
    is_capped = seed % 3 == 0
    executions = [name]
    amount = TIGHT_USD if is_capped else ROOMY_USD
    lab.administer("/_local/faults", {**CHAOS, "seed": seed})
    chaos.throttle(THROTTLED_SHARE, seed)
    try:
        with killed_functions(chaos, seed) as killed:
            start_chained(lab, name, measured, is_spot=True, max_usd=amount, max_attempts=8)
            if seed % 4 == 0:
                time.sleep(12)
                chaos.command("stop", name, "--local")
                chaos.command("train", "--resume", name, "--no-wait", "--local")
                executions.append(f"{name}-2")
            chaos.until_swept(
                lambda: all(chaos.execution_status(execution) in ENDED for execution in executions),
                900,
            )
    finally:
        lab.administer("/_local/faults", {})
        chaos.throttle(0.0, seed)
    evidence = gather(chaos, *executions)
    assert find_strays(evidence) == []
    for execution in executions:
        receipt = chaos.document("report", execution, "--receipt")["receipt"]
        assert [*check_paid(evidence, execution, receipt), *check_ended(evidence, execution)] == []
    result = result_of(lab, executions[-1])
    last = executions[-1]
    assert killed.total() > 0
    assert result.outcome in {
        Outcome.COMPLETED,
        Outcome.COST_STOPPED if is_capped else Outcome.INTERNAL_ERROR,
    }, result
    assert result.message is None or result.outcome is not Outcome.COMPLETED
    # As without a fault: each step once, in order, up to the last one
    assert result.measured is not None
    wanted = losses_of_script(STEPS)
    points = [(point.step, point.loss) for point in result.measured.loss.points]
    assert points == wanted[: len(points)]
    if result.outcome is Outcome.COMPLETED:
        assert len(points) == STEPS
        assert json.loads(model_file(lab, last, "model.json")) == {
            "step": STEPS,
            "value": wanted[-1][1],
        }
    starts = logged_starts(lab, last)
    assert starts[0][0] == 1
    for (_, before), (first, _) in pairwise(starts):
        # From the newest checkpoint, or from the one before if it was not in S3 yet
        assert (first - 1) % EVERY == 0
        assert before - before % EVERY - EVERY <= first - 1 <= before


def logs_of(lab: LocalLab, execution: str) -> list[str]:
    """The logs of its starts, in order."""
    s3 = lab.client("s3")
    bucket = lab.deployment().bucket
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"runs/{execution}/").get("Contents", [])
    keys = [row["Key"] for row in listed if row["Key"].endswith(".jsonl")]
    keys.sort(key=lambda key: str(key.split(".")[-2]))
    return [s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode() for key in keys]


def logged_losses(lab: LocalLab, execution: str) -> dict[int, set[float]]:
    """All that were logged of each step, also by a start whose later steps were lost."""
    losses: dict[int, set[float]] = {}
    for entry in (
        json.loads(line) for text in logs_of(lab, execution) for line in text.splitlines()
    ):
        if entry["kind"] == "step":
            losses.setdefault(entry["step"], set()).add(entry["loss"])
    return losses


def count_interruptions(lab: LocalLab, job_name: str) -> int:
    job = lab.client("sagemaker").describe_training_job(TrainingJobName=job_name)
    return sum(
        transition["Status"] == "Interrupted" for transition in job["SecondaryStatusTransitions"]
    )


def interrupts_early(seed: int, job_names: list[str], steps: int, most: int) -> bool:
    """Whether the local cloud interrupts each job within so many steps, some of them with a notice
    and some without.
    """
    told = set()
    for name in job_names:
        dice = random.Random(f"{seed}:interruption:{name}")
        if dice.randrange(1, steps) > most:
            return False
        told.add(dice.random() < SPOT["spot_notice_fraction"])
    return len(told) > 1


def logged_starts(lab: LocalLab, execution: str) -> list[tuple[int, int]]:
    """The first and the last step of each start that logged any, in order."""
    steps_of_starts = [
        [int(step) for step in LOGGED_STEP.findall(text)] for text in logs_of(lab, execution)
    ]
    return [(steps[0], steps[-1]) for steps in steps_of_starts if steps]


@pytest.mark.nightly
def test_the_quickstarts_winner_is_trained_in_full_and_served_as_the_page_says(
    lab: LocalLab,
) -> None:
    """Then once more, stopped twice and interrupted three times: the losses and the weights are the
    same. The suite has fewer steps than the page's, and evaluates, so that the best model is kept
    too; with WHOLE it is the page's.
    """
    lab.administer("/_local/faults", {})
    (lab.folder / "suites").mkdir(exist_ok=True)
    suite = yaml.safe_load((REPO_ROOT / "suites" / "quickstart.yaml").read_text())
    suite["matrix"]["batch_size_per_device"] = [8]
    suite["baseline"] = {"padding": "max-length"}
    if not WHOLE:
        suite["workload"]["examples"] = 9600
        suite |= {
            "search": "grid",
            "measurement": {"trials": 1, "max_steps": 20, "evaluate_every_steps": 300},
        }
    (lab.folder / "suites" / "quickstart.yaml").write_text(yaml.safe_dump(suite))
    steps = suite["workload"]["examples"] // 8
    assert [line.split()[0] for line in COMMANDS] == ["local", "run", "train", "deploy"]
    for line in COMMANDS:
        answer = lab.succeed(*line.split())
    assert "answers agree with the training job's own" in answer.errors
    whole = result_of(lab, "model")
    assert whole.measured is not None
    if not WHOLE:
        assert [evaluation.step for evaluation in whole.measured.evaluations] == [
            300,
            600,
            900,
            1200,
        ]
        best = min(whole.measured.evaluations, key=lambda evaluation: evaluation.metrics["loss"])
        if best.step != 1200:
            told = json.loads(model_file(lab, "model", "best/best.json"))
            assert told["step"] == best.step

    job = whole.attempts[-1].job_name
    executions = ("again", "again-2", "again-3")
    names = [
        job.replace(execution_digest("model"), execution_digest(execution_id))
        for execution_id in executions
    ]
    seed = next(seed for seed in range(10**7) if interrupts_early(seed, names, steps, steps // 20))
    lab.administer("/_local/faults", {**SPOT, "seed": seed})
    lab.succeed("train", "quick", "--spot", "--name", "again", "--no-wait", "--local")
    for execution, tenths, wait in (("again", 3, ["--no-wait"]), ("again-2", 6, [])):
        stop_after(lab, execution, steps * tenths // 10)
        answer = lab.succeed("train", "--resume", "again", "--local", *wait)
    lab.administer("/_local/faults", {})
    result = result_of(lab, "again-3")
    assert [count_interruptions(lab, name) for name in names] == [1, 1, 1]
    assert losses_of(result) == losses_of(whole)
    every = logged_losses(lab, "model")
    assert sorted(every) == list(range(1, steps + 1))
    assert all(len(losses) == 1 for losses in every.values())
    assert logged_losses(lab, "again-3") == every
    assert model_file(lab, "again-3", "model.safetensors") == model_file(
        lab, "model", "model.safetensors"
    )
    lab.succeed("deploy", "again-3", "--local")
    names = [
        row["deployment"]["name"]
        for row in lab.traindyno("endpoints", "--local", "--format", "json").json()
    ]
    assert len(names) == 2
    assert [lab.traindyno("undeploy", name, "--local").status for name in names] == [0, 0]
