"""`traindyno plan` from files: no account, no credentials, no network."""

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local.forked_programs import REPO_ROOT, Answer, run_command
from tests.sentences import Snapshot
from tests.unit.suites import script_document, unprepared_document

PRICES = "region: us-east-1\nas_of: 2026-11-21\nprices: {ml.g5.xlarge: 1.408}\n"
ENOUGH = (
    "region: us-east-1\nquotas:\n  ml.g5.xlarge for training job usage: {applied: 4, in_use: 1}\n"
    "  Number of instances across all training jobs: 8\n"
)
NONE_LEFT = "region: us-east-1\nquotas: {ml.g5.xlarge for training job usage: 0}\n"

IN_S3 = {**unprepared_document()["workload"], "model": "s3://bucket/gpt2/"}
FILES = ("--prices", "prices.yaml", "--quotas", "quotas.yaml")


def plan(
    folder: Path, *options: str, quotas: str = ENOUGH, prices: str = PRICES, **changes: Any
) -> Answer:
    """Run the command where no account is known; of a model on the Hub, nothing is cached there."""
    document = unprepared_document(**{"workload": IN_S3, **changes})
    files = {"suite.yaml": yaml.safe_dump(document), "prices.yaml": prices, "quotas.yaml": quotas}
    for name, text in files.items():
        (folder / name).write_text(text)
    return run_command("plan", "suite.yaml", *options, folder=folder)


def test_a_plan_needs_two_files_only(tmp_path: Path) -> None:
    answer = plan(tmp_path, *FILES, "--format", "json", measurement={"trials": 3})
    assert (answer.status, answer.errors) == (0, "")
    planned = answer.json()
    (lane,) = planned["lanes"]
    # 2 cells x 3 trials in 3 jobs of 1800 s, 480 s for the image and 480 s to end, at $1.408/h;
    # five attempts each, and one for the second run: 3 x 6 x $1.07947 4 - 1 instances are free
    assert (planned["run_count"], lane["concurrency"], lane["waves"]) == (6, 3, 1)
    bounds = [round(Decimal(planned[name]), 4) for name in ("one_attempt_usd", "worst_case_usd")]
    assert bounds == [Decimal("3.2384"), Decimal("19.4304")]
    assert lane["price"]["usd_per_hour"] == "1.408"
    assert not planned["is_refused"]


def test_the_table_names_lanes_quotas_cost_and_the_source_of_prices(tmp_path: Path) -> None:
    answer = plan(tmp_path, *FILES)
    assert answer.status == 0
    assert answer.output.splitlines()[-1].rstrip() == (
        "can start, if the account has these quotas: nothing else stands in the way"
    )
    told = " ".join(answer.output.split())
    for words in (
        "ml.g5.xlarge",
        "L-00C91CB5",
        # two jobs of 2760 s at $1.408/h; at worst twelve
        (
            "$2.16 if every job takes one attempt of 1800 s (its limit) and 960 s for the image, "
            "to stop and to upload"
        ),
        "$12.95 worst case: all 5 attempts of every job, and one more for each further run of "
        "the job, reach the limit, and each takes 960 s for the image, to stop and to upload",
        "prices.yaml",
    ):
        assert words in told


def test_lanes_are_lines_in_a_narrow_terminal(tmp_path: Path) -> None:
    plan(tmp_path)
    words = [
        sys.executable,
        "-c",
        "from traindyno.cli.entry import app; app()",
        "plan",
        "suite.yaml",
        *FILES,
    ]
    environment = {"HOME": str(tmp_path), "PYTHONPATH": str(REPO_ROOT), "COLUMNS": "80"}
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    told = done.stdout.splitlines()
    assert max(map(len, told)) <= 80
    assert any(line.startswith("lane ml.g5.xlarge: runs ") for line in told)


def test_the_plan_names_travelling_and_left_out_files(tmp_path: Path) -> None:
    for name in (
        "own/train.py",
        "own/.env",
        "own/.env.example",
        "images/a.png",
        "images/.git/config",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x" * 1024)
    workload = {**script_document()["workload"], "source": "own", "channels": {"images": "images"}}
    changes = {name: script_document()[name] for name in ("training", "baseline", "matrix")}
    told = " ".join(
        plan(tmp_path, *FILES, workload=workload, **changes).output.split()
    )  # whatever the width
    left_out = "2 named like a credential (.env, .env.example)"
    assert f"source own: 1 file (1.0 KiB) travels; left out: {left_out}" in told
    assert "channels.images images: 1 file (1.0 KiB) travels; left out: 1 hidden (.git/)" in told
    allowed = ("--also-send", "own/.env.example")
    answer = plan(tmp_path, *FILES, *allowed, "--format", "json", workload=workload, **changes)
    assert (
        "source own: 2 files (2.0 KiB) travel; left out: 1 named like a credential (.env)"
        in answer.errors
    )
    assert answer.json()["suite"] == "quick-look"
    answer = plan(tmp_path, *FILES, "--also-send", "own/nothing", workload=workload, **changes)
    assert answer.status == 2
    assert "own/nothing does not exist" in answer.errors


@pytest.mark.parametrize("command", ["plan", "run"])
def test_partly_ignored_data_is_refused_before_anything_else(command: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("train-0.jsonl", "train-1.jsonl.zst"):
        (tmp_path / "data" / name).write_text('{"text": "one"}')
    workload = {**IN_S3, "dataset": {"path": "data"}}
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(unprepared_document(workload=workload)))
    answer = run_command(command, "suite.yaml", folder=tmp_path)
    assert (answer.status, answer.output) == (2, "")
    told = " ".join(answer.errors.split())
    assert (
        "workload.dataset.path: data: the dataset has files of a form that can't be read "
        "(train-1.jsonl.zst)"
    ) in told


def test_a_file_of_quotas_is_shown_as_far_as_the_suite_needs_it(tmp_path: Path) -> None:
    quotas = (
        f"{ENOUGH}  ml.p5.48xlarge for training job usage: 2\n"
        "  ml.g6e.xlarge for training job usage: 3\n"
    )
    answer = plan(tmp_path, *FILES, "--format", "json", quotas=quotas)
    assert [(quota["quota"]["name"], quota["applied"]) for quota in answer.json()["quotas"]] == [
        ("ml.g5.xlarge for training job usage", 4),
        ("Maximum number of instances per training job", None),
        ("Number of instances across all training jobs", 8),
        ("Longest run time for a training job", None),
    ]
    table = plan(tmp_path, *FILES, quotas=quotas).output
    assert "ml.p5.48xlarge" not in table
    (row,) = [line for line in table.splitlines() if "Longest run time" in line]
    assert row.count("unknown") == 2  # applied, and AWS's default, which nobody says holds


def test_every_refusal_comes_with_its_request_and_exit_status_2(tmp_path: Path) -> None:
    limits = {"max_usd": 0.5, "max_hours": 0.1, "max_job_seconds": 1800}
    answer = plan(tmp_path, *FILES, "--format", "json", quotas=NONE_LEFT, limits=limits)
    assert answer.status == 2
    assert len(answer.json()["refusals"]) == 3
    assert answer.json()["is_refused"]
    for words in (
        "limits.max_usd",
        "limits.max_hours",
        "aws service-quotas request-service-quota-increase",
        "--desired-value 1 --region us-east-1",
    ):
        assert words in answer.errors
    assert answer.errors.splitlines()[-1] == "can't start: 3 reasons above"


def test_without_aws_settings_prices_are_of_a_snapshot_and_quotas_of_a_new_account(
    snapshot: Snapshot,
    tmp_path: Path,
) -> None:
    answer = plan(tmp_path, "--format", "json")
    planned = answer.json()
    assert {
        (quota["quota"]["name"], quota["applied"], quota["default"]) for quota in planned["quotas"]
    } >= {("ml.g5.xlarge for training job usage", None, 0)}
    assert planned["lanes"][0]["price"]["source"].startswith("a snapshot, not AWS's: ")
    assert (
        "prices are of a snapshot of us-east-1, not AWS's, and quotas are a new account's"
        in answer.errors
    )
    assert "--desired-value 1 --region us-east-1" in answer.errors
    snapshot(planned["why_no_history"])
    assert answer.status == 2  # a new account has none of these instances


def test_without_an_account_another_region_than_the_snapshots_is_refused(tmp_path: Path) -> None:
    answer = plan(tmp_path, "--region", "eu-central-1", "--format", "json")
    assert (answer.status, answer.output) == (1, "")
    assert "prices of eu-central-1 can't be read: give --profile" in answer.errors
    assert "--region us-east-1: a snapshot of prices" in answer.errors
    assert plan(tmp_path, "--region", "us-east-1", "--format", "json").json()["lanes"]


def test_plan_without_credentials_names_the_option_for_a_file_of_quotas(tmp_path: Path) -> None:
    answer = plan(tmp_path, "--prices", "prices.yaml")
    assert answer.status == 1
    assert "--quotas FILE to plan without an account" in answer.errors


@pytest.mark.parametrize(
    ("prices", "quotas", "says"),
    [
        (
            PRICES.replace("1.408", "cheap"),
            ENOUGH,
            'prices.yaml:3: prices.ml.g5.xlarge: got "cheap", expected a number',
        ),
        (
            PRICES,
            ENOUGH.replace("8", "-8"),
            "quotas.yaml:4: quotas.Number of instances across all training jobs",
        ),
        (
            PRICES,
            ENOUGH.replace("us-east-1", "eu-west-1"),
            "are of different regions, eu-west-1 and us-east-1",
        ),
    ],
)
def test_wrong_files_are_refused_with_their_lines(
    tmp_path: Path, prices: str, quotas: str, says: str
) -> None:
    answer = plan(tmp_path, *FILES, prices=prices, quotas=quotas)
    assert (answer.status, answer.output) == (2, "")
    assert says in answer.errors


def test_a_price_missing_in_the_file_is_unknown_and_refused(tmp_path: Path) -> None:
    answer = plan(tmp_path, *FILES, prices=PRICES.replace("ml.g5.xlarge", "ml.g5.2xlarge"))
    assert answer.status == 2
    assert "the price of ml.g5.xlarge is unknown" in answer.errors
    assert "unknown" in answer.output


@pytest.mark.parametrize("form", ["short", "long"])
def test_local_model_folder_is_planned_without_a_copying_job(tmp_path: Path, form: str) -> None:
    """`run` uploads it. The file has no price for the type of a job that copies."""
    folder = tmp_path / "my-model"
    folder.mkdir()
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": 1,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "n_layer": 1,
        "n_head": 1,
        "n_embd": 2,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text("{}")
    header = b'{"wte.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}'
    weights = len(header).to_bytes(8, "little") + header + bytes(8)
    (folder / "model.safetensors").write_bytes(weights)
    model: Any = "./my-model" if form == "short" else {"path": "./my-model"}
    answer = plan(tmp_path, *FILES, "--format", "json", workload={**IN_S3, "model": model})
    assert answer.status == 0
    assert answer.errors.startswith("model ./my-model: 3 files")
    assert answer.json()["preparation"] is None
    assert "ml.m7i.xlarge" not in answer.output, "nor is its quota needed"
    on_hub = plan(tmp_path, *FILES, "--format", "json", workload={**IN_S3, "model": "me/my-model"})
    assert on_hub.json()["preparation"]["job_count"] == 1


def test_missing_files_of_this_machine_are_refused_with_file_and_line(tmp_path: Path) -> None:
    answer = plan(
        tmp_path, *FILES, workload={**IN_S3, "dataset": {"path": "./none", "format": "text"}}
    )
    assert (answer.status, answer.output) == (2, "")
    number = (tmp_path / "suite.yaml").read_text().splitlines().index("    path: ./none") + 1
    assert f"suite.yaml:{number}: workload.dataset.path: './none' does not exist" in answer.errors


def test_an_image_missing_in_the_region_is_said(tmp_path: Path) -> None:
    workload = {**script_document()["workload"], "image": "pytorch-training:1.12-gpu-py38"}
    given: dict[str, Any] = {"workload": workload, "preparation": {}}
    given |= {"training": {"instance": "ml.g5.xlarge"}}
    (tmp_path / "scripts").mkdir()
    elsewhere = PRICES.replace("us-east-1", "mars-1"), ENOUGH.replace("us-east-1", "mars-1")
    refused = plan(tmp_path, *FILES, prices=elsewhere[0], quotas=elsewhere[1], **given)
    assert refused.status == 2
    assert "pytorch-training:1.12-gpu-py38 is not published in mars-1" in refused.errors
