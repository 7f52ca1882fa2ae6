"""`traindyno init`: a suite that plan accepts, with an estimate of each cell, from files and
without an account.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from tests.local.forked_programs import KEPT, REPO_ROOT, Answer
from tests.training.hub_server import hub_server
from tests.unit.slices.test_init_command import (
    CONFIG,
    FILES,
    MODEL,
    PRICES,
    QUOTAS,
    WORK,
    check_cap,
    init,
    written,
)
from traindyno.api.memory_estimates import MemoryEstimator
from traindyno.core.run.workload import Workload
from traindyno.core.suite.suite_file import parse_part
from traindyno.slices.estimates.candidates import EstimatedWork, find_candidates

# Its memory is in the cache; a further --data counts.
ESTIMATED = (*WORK, "--instance", "ml.g5.xlarge")


@pytest.fixture(autouse=True, scope="module")
def _one_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The model is estimated once, in the time that a busy machine takes."""
    workload = {
        "task": "causal-lm",
        "model": {"config": CONFIG},
        "tokenizer": {"train_vocabulary_size": CONFIG["vocab_size"]},
        "sequence_length": 512,
        "examples": 1,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with MemoryEstimator(parse_part(workload, Workload), beside=Path(), say=print) as estimator:
            work = EstimatedWork(
                shape=estimator.shape(), examples=1, prices={}, memory=estimator.find
            )
            assert find_candidates(work, ["ml.g5.xlarge", "ml.g5.12xlarge"], [1])
        yield


def test_plan_accepts_a_suite_of_estimated_cells(tmp_path: Path) -> None:
    answer = init(tmp_path, "init", *WORK, *FILES, "--format", "json")
    assert answer.status == 0, answer.errors
    cells = answer.json()["cells"]
    assert all(
        planned_cell["fits"]
        and planned_cell["usd"]["low"] < planned_cell["usd"]["mean"] < planned_cell["usd"]["high"]
        for planned_cell in cells
    )
    costs = [
        planned_cell["usd"]["mean"] for planned_cell in cells[1:-1]
    ]  # between the usual cell and the compiled one
    assert costs == sorted(costs)
    usual = cells[0]
    assert (usual["settings"]["precision"], usual["settings"]["batch_size_per_device"]) == (
        "bf16",
        8,
    )
    tokens = 100_000 * 512
    assert usual["tokens_per_second"] == pytest.approx(tokens / usual["seconds"]["mean"])
    assert usual["usd_per_billion_tokens"] == pytest.approx(usual["usd"]["mean"] / tokens * 1e9)
    assert answer.json()["too_little"] is None
    assert {
        planned_cell["settings"]["instance"]: planned_cell["quota"]["have"]
        for planned_cell in cells
    }["ml.g6e.xlarge"] == 0
    assert any(
        "request-service-quota-increase" in line for line in answer.json()["before_it_can_run"]
    )
    planned = init(tmp_path, "plan", "suite.yaml", *FILES, "--format", "json")
    assert [planned_cell["label"] for planned_cell in planned.json()["cells"]] == [
        planned_cell["label"] for planned_cell in cells
    ]
    kept = written(tmp_path)["estimates"]
    assert (kept["examples"], kept["sequence_length"]) == (100_000, 512)
    for estimated, cell in zip(cells, planned.json()["cells"], strict=True):
        for name in ("memory_bytes", "seconds", "usd"):
            assert kept["cells"][cell["cell_id"]][name] == pytest.approx(estimated[name], rel=1e-3)


def test_the_name_of_the_file_becomes_the_name_of_a_suite(tmp_path: Path) -> None:
    """As `plan` makes it of a file without a name."""
    answer = init(
        tmp_path, "init", "my_first suite.yaml", *WORK, *FILES, "--instance", "ml.g5.xlarge"
    )
    assert answer.status == 0, answer.errors
    assert (
        yaml.safe_load((tmp_path / "my_first suite.yaml").read_text())["name"] == "my-first-suite"
    )


def test_a_type_alone_leads_to_a_suite_without_refusal_and_without_the_other_types(
    tmp_path: Path,
) -> None:
    answer = init(
        tmp_path, "init", *WORK, *FILES, "--instance", "ml.g5.xlarge", "--goal", "fastest"
    )
    assert answer.status == 0, answer.errors
    suite = written(tmp_path)
    assert (suite["goal"], suite["training"]["instance"]) == ("fastest", "ml.g5.xlarge")
    assert suite["baseline"] == {"batch_size_per_device": 8, "compiler": "none"}
    assert suite["training"]["precision"] == "bf16"


def test_without_an_account_prices_come_from_a_snapshot_and_quotas_are_the_defaults(
    tmp_path: Path,
) -> None:
    answer = init(tmp_path, "init", *WORK, "--instance", "ml.g5.xlarge")
    assert answer.status == 0, answer.errors
    assert "$" in answer.output
    assert "prices are of a snapshot of us-east-1, not AWS's" in " ".join(answer.output.split())
    assert "Estimates of 100,000 examples of 512 tokens" in " ".join(answer.output.split())
    assert "have 0, need 1" in " ".join(answer.output.split())


def hub_init(folder: Path, model: str, environment: Mapping[str, str], *options: str) -> Answer:
    init_options = (*WORK[:3], model, *WORK[4:], *options)
    for name, text in {"prices.yaml": PRICES, "quotas.yaml": QUOTAS}.items():
        (folder / name).write_text(text)
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment = {
        **kept,
        "HOME": str(folder),
        "PYTHONPATH": str(REPO_ROOT),
        "AWS_EC2_METADATA_DISABLED": "true",
        **environment,
    }
    # In a process of its own: huggingface_hub reads the environment when it is imported.
    done = subprocess.run(
        [sys.executable, "-m", "traindyno", "init", *init_options, *FILES],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return Answer(status=done.returncode, output=done.stdout, errors=done.stderr)


def test_the_configuration_of_a_hub_id_is_fetched_or_the_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hub/owner/gpt").mkdir(parents=True)
    (tmp_path / "hub/owner/gpt/config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "hub/owner/gpt/model.safetensors").write_bytes(b"weights")
    with hub_server(tmp_path / "hub", tmp_path / "cache") as hub:
        answer = hub_init(tmp_path, "owner/nothing", hub.environment)
        assert answer.status == 2
        assert "the configuration of owner/nothing is neither on this machine" in answer.errors
        assert not (tmp_path / "suite.yaml").exists()
        answer = hub_init(tmp_path, "owner/gpt", hub.environment, "--format", "json")
    assert answer.status == 0, answer.errors
    assert all(cell["memory_bytes"] and cell["usd"] for cell in answer.json()["cells"])
    assert written(tmp_path)["model"] == "owner/gpt"
    assert "model.safetensors" not in hub.sent
    (tmp_path / "suite.yaml").unlink()
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "empty")}
    answer = hub_init(tmp_path, "owner/gpt", offline, "--instance", "ml.g5.xlarge")
    assert (answer.status, (tmp_path / "suite.yaml").exists()) == (2, False)
    assert "HF_TOKEN" in answer.errors


def test_left_out_types_and_too_little_work_are_said(tmp_path: Path) -> None:
    types = ("ml.g5.xlarge", "ml.g5.2xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge")
    named = [word for name in types for word in ("--instance", name)]
    work = [*MODEL, "--examples", "100", "--max-usd", "50"]
    (tmp_path / "prices.yaml").write_text(PRICES)
    prices = tmp_path / "more.yaml"
    prices.write_text(PRICES.replace("2.6", "2.6, ml.g5.2xlarge: 1.515"))
    files = ("--prices", "more.yaml", *FILES[2:])
    answer = init(tmp_path, "init", *work, *named, *files)
    assert answer.status == 0, answer.errors
    assert "left out, no known price: ml.p4d.24xlarge" in answer.output
    assert "the same devices for less: ml.g5.2xlarge" in answer.output
    assert "less than a job's start" in " ".join(answer.output.split())
    assert "its weights are random" in answer.output


def test_paths_of_options_begin_at_the_current_folder_as_everywhere(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("text\na\nb\n")
    (tmp_path / "own" / "inner").mkdir(parents=True)
    for suite, data in (
        ("own/suite.yaml", "../data.csv"),
        ("own/inner/suite.yaml", "../../data.csv"),
        ("suite.yaml", "data.csv"),
    ):
        answer = init(tmp_path, "init", suite, *ESTIMATED, "--data", "data.csv", *FILES)
        assert answer.status == 0, answer.errors
        assert yaml.safe_load((tmp_path / suite).read_text())["dataset"] == data
    (tmp_path / "own" / "inner" / "rows.csv").write_text("text\na\nb\n")
    options = (*ESTIMATED, "--data", "own/inner/rows.csv")
    answer = init(tmp_path, "init", "own/second.yaml", *options, *FILES)
    assert answer.status == 0, answer.errors
    assert (
        yaml.safe_load((tmp_path / "own/second.yaml").read_text())["dataset"] == "./inner/rows.csv"
    )


def test_in_a_terminal_a_refused_answer_is_asked_for_again(tmp_path: Path) -> None:
    rows = [f"{n},{'ab'[n % 2]} c d,{n % 3},{n % 2}" for n in range(9)]
    (tmp_path / "data.csv").write_text("\n".join(["id,body,mood,stars", *rows]))
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "n_layer": 2, "n_embd": 96}))
    (tmp_path / "prices.yaml").write_text(PRICES)
    (tmp_path / "quotas.yaml").write_text(QUOTAS)
    person, terminal = os.openpty()
    os.write(person, b"bert\nsequence-classification\n./nowhere\nconfig.json\ndata.csv\nmuch\n50\n")
    command = [
        sys.executable,
        "-m",
        "traindyno",
        "init",
        *FILES,
        "--text-column",
        "body",
        "--label-column",
        "mood",
    ]
    environment = {**os.environ, "PYTHONPATH": str(REPO_ROOT)}
    done = subprocess.run(
        command,
        stdin=terminal,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    os.close(person)
    os.close(terminal)
    assert done.returncode == 0, done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    for refused_option in (
        "a task of the built-in trainer",
        "'./nowhere' does not exist",
        "Input should be a valid number",
    ):
        assert refused_option in said, said
    assert written(tmp_path)["dataset"] == {
        "path": "data.csv",
        "text_column": "body",
        "label_column": "mood",
    }


@pytest.mark.parametrize(("cap", "is_left_out"), [("3", True), ("0.5", False)])
def test_types_over_the_cap_are_left_out(cap: str, is_left_out: bool, tmp_path: Path) -> None:
    check_cap(MODEL, cap, is_left_out, tmp_path)


@pytest.mark.parametrize("option", ["--text-column", "--label-column"])
def test_a_missing_column_is_refused_by_its_name(option: str, tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_text("text,label\ngood,1\nbad,0\n")
    given = ("--task=sequence-classification", "--model=a/b", "--data=reviews.csv", "--max-usd=5")
    answer = init(tmp_path, "init", *given, f"{option}=missing")
    field = option.removeprefix("--").replace("-", "_")
    assert answer.status == 2
    said = " ".join(answer.errors.replace("│", "").split())
    assert f'dataset.{field}: got "missing", expected a column of the data: text, label' in said
    assert not (tmp_path / "suite.yaml").exists()


@pytest.mark.parametrize("columns", [0, 3000])
def test_unreadable_data_is_refused_in_a_few_words(columns: int, tmp_path: Path) -> None:
    """A folder of links only, and a table of many columns of which none is named."""
    header = ",".join(f"column{number}" for number in range(columns)) or "text"
    (tmp_path / "data.csv").write_text(f"{header}\n{header}\n")
    (tmp_path / "texts").mkdir()
    if columns:
        (tmp_path / "data.csv").rename(tmp_path / "texts" / "data.csv")
    else:
        (tmp_path / "texts" / "data.csv").symlink_to(tmp_path / "data.csv")
    options = ["texts" if argument == MODEL[5] else argument for argument in WORK]
    answer = init(
        tmp_path, "init", *(options if not columns else [*options[:6], "--max-usd", "50"]), *FILES
    )
    assert answer.status == 2
    words = (
        "and 2994 more"
        if columns
        else "texts: a part of the data would be missing: data.csv (links"
    )
    assert words in " ".join(answer.errors.split()), answer.errors
    assert not (tmp_path / "suite.yaml").exists()


def test_a_model_without_a_fitting_type_is_refused_and_a_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "large.json").write_text(
        json.dumps({**CONFIG, "n_layer": 96, "n_embd": 12288, "n_head": 96})
    )
    large = (
        "--model",
        "large.json",
        *(argument for argument in WORK if argument not in ("--model", "config.json")),
    )
    answer = init(tmp_path, "init", *large, *FILES)
    assert answer.status == 2
    assert "175 billion parameters fits into" in answer.errors
    assert "--max-instances" in answer.errors
    (tmp_path / "suite.yaml").write_text("mine")
    answer = init(tmp_path, "init", *WORK, *FILES)
    assert (answer.status, (tmp_path / "suite.yaml").read_text()) == (2, "mine")


@pytest.mark.nightly
def test_an_adapter_is_in_each_cell_and_plan_accepts_the_suite(tmp_path: Path) -> None:
    asked = ("--adapter", "16", "--instance", "ml.g5.xlarge", *FILES, "--format", "json")
    answer = init(tmp_path, "init", *WORK, *asked)
    assert answer.status == 0, answer.errors
    settings = [cell["settings"] for cell in answer.json()["cells"]]
    assert {setting["adapter"]["rank"] for setting in settings} == {16}
    assert {setting["base_weights"] for setting in settings} == {"bf16"}
    adapter = {"rank": 16, "learning_rate": 2e-4}
    assert written(tmp_path)["training"]["adapter"] == adapter
    planned = init(tmp_path, "plan", "suite.yaml", *FILES, "--format", "json")
    assert len(planned.json()["cells"]) == len(settings)
