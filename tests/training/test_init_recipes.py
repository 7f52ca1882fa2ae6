"""`traindyno init` for each of AWS's 303 published recipes: a plan with memory, time and cost, or
the reason.
"""

import csv
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.local.forked_programs import REPO_ROOT
from tests.nightly import NIGHTLY
from traindyno.api.memory_estimates import MemoryEstimator
from traindyno.api.model_check import ConfigurationUnreachable
from traindyno.cli.main import commands
from traindyno.core.planning.memory import MemoryFinding
from traindyno.core.planning.peak_lines import MemoryEstimate
from traindyno.core.run.processes import world_size
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.suite_file import parse_part
from traindyno.slices.estimates import first_suite
from traindyno.slices.estimates.candidates import FROZEN_BYTES
from traindyno.slices.estimates.first_suite import NothingFits
from training.memory.__main__ import answer
from training.models.flops import measure_size
from training.models.model_config import model_config
from training.models.shape import measure_shape

FOLDER = REPO_ROOT / "tests" / "data" / "published"
RECIPES = list(csv.DictReader((FOLDER / "hyperpod_recipes_instances.csv").open(encoding="utf-8")))
MODELS: dict[str, dict[str, Any]] = json.loads(
    (FOLDER / "model_configurations.json").read_text(encoding="utf-8")
)
#: Words of a recipe's technique, adapter or name that its trainer does and `causal-lm` doesn't.
TECHNIQUES = ("eval", "dpo", "grpo", "ppo", "rft")
#: Of a recipe that names none; most fine-tuning recipes have it.
SEQUENCE_LENGTH = 4096
PLAN = "plan"
NO_STEP_FITS = "no step fits"
NO_PRICE = "no known price"
NO_CONFIGURATION = "no public configuration"
NO_TASK = "a technique that the built-in trainer lacks"
#: All of them count the FLOPs of 26 models.
DRAWN = RECIPES if NIGHTLY else RECIPES[::12]
EXPECTED_OF_DRAWN = {PLAN: 6, NO_STEP_FITS: 1, NO_TASK: 18, NO_CONFIGURATION: 1}


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", text.lower())


def _options(recipe: dict[str, str], folder: Path) -> tuple[str, ...]:
    """The recipe's technique is the task, its types and nodes are the most that a cell may use."""
    name = f"{recipe['Technique']} {recipe['Adapter']} {recipe['Model']}".lower()
    distils = ("distillation",) if recipe["Technique"] == "Distillation" else ()
    task = next(
        iter((*distils, *(technique for technique in TECHNIQUES if technique in name), "causal-lm"))
    )
    known = [
        model
        for model in MODELS
        if _letters(model) in _letters(recipe["Model"].replace("Distilled", "Distill"))
    ]
    model = f"unpublished/{_letters(recipe['Model'])}"
    if known:
        model = str(folder / f"{_letters(known[0])}.json")
        Path(model).write_text(json.dumps(MODELS[known[0]]["config"]), encoding="utf-8")
    length = recipe["Seq Length"].replace(",", "").replace("-", str(SEQUENCE_LENGTH))
    types = [
        f"--instance=ml.{instance.strip()}"
        for instance in recipe["Instance Type"].split(",")
        if "." in instance
    ]
    nodes = recipe["Nodes"].replace("-", "1")
    adapter = ("--adapter=16",) if "lora" in name else ()
    fixed = (
        *adapter,
        f"--task={task}",
        f"--model={model}",
        f"--sequence-length={length}",
        f"--max-instances={nodes}",
        *types,
    )
    return (*fixed, "--data=s3://bucket/texts/", "--examples=10000", "--max-usd=500")


def _outcome(done: Result) -> str:
    """Of a plan, that each cell has all figures; else the reason."""
    if done.exit_code == 0:
        assert all(
            cell["memory_bytes"] and cell["seconds"] and cell["usd"]
            for cell in json.loads(done.stdout)["cells"]
        )
        return PLAN
    if isinstance(done.exception, ConfigurationUnreachable):
        assert "neither on this machine nor" in str(done.exception)
        return NO_CONFIGURATION
    if isinstance(done.exception, NothingFits):
        return NO_PRICE if "has a known price" in str(done.exception) else NO_STEP_FITS
    words = " ".join(done.stderr.replace("│", " ").split())
    assert "xpected a task of the built-in trainer" in words
    return NO_TASK


def _state(estimator: MemoryEstimator, settings: Settings) -> MemoryFinding:
    """Parameters and gradients in fp32 and the two states of AdamW, or the frozen weights: what a
    step needs at least.
    """
    shape = estimator.shape()
    processes = world_size(settings)
    assert shape is not None
    assert processes is not None
    parts = processes if settings.strategy is Strategy.FSDP else 1
    bytes_each = 16.0 if settings.adapter is None else FROZEN_BYTES[settings.base_weights]
    held = int(bytes_each * shape.parameters) // parts
    return MemoryFinding(
        estimate=MemoryEstimate(peak_bytes=held, parameter_bytes=held, optimizer_bytes=0)
    )


@pytest.fixture(autouse=True)
def _counted_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are counted by this process, which has imported PyTorch. The state of a step decides
    what fits: activations would be estimated for minutes.
    """
    monkeypatch.setattr(MemoryEstimator, "_ask", lambda self, asked: answer(self._workload, asked))
    monkeypatch.setattr(MemoryEstimator, "find", _state)


@pytest.mark.timeout(1800)
def test_each_published_recipe_has_a_plan_or_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_suite, "ESTIMATING_SECONDS", 1800)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # recipes share models
    account = dict.fromkeys(
        ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID")
    )
    environment = {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true", **account}

    @cache
    def outcome(options: tuple[str, ...]) -> str:
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
        return _outcome(
            CliRunner().invoke(
                commands, ["init", str(file), *options, "--format=json"], env=environment
            )
        )

    expected = {
        PLAN: 73,
        # 32 and 33 billion parameters in full on one p5, with a state of 16 bytes each
        NO_STEP_FITS: 4,
        NO_PRICE: 1,  # the snapshot of prices lacks p4de
        NO_TASK: 204,  # DPO, GRPO, PPO, RFT, distillation, evaluation
        NO_CONFIGURATION: 21,  # Nova is not published, and some models only LoRA recipes name
    }
    outcomes = Counter(outcome(_options(recipe, tmp_path)) for recipe in DRAWN)
    assert outcomes == (expected if NIGHTLY else EXPECTED_OF_DRAWN)


@pytest.mark.parametrize(
    ("instances", "usual", "is_compared"),
    [
        ("ml.p5.48xlarge", (None, "fp32"), True),
        ("ml.g5.12xlarge", (16, "bf16"), False),
        ("ml.g4dn.2xlarge", (16, "nf4"), False),
        ("ml.g4dn.2xlarge ml.g5.12xlarge", (16, "bf16"), False),
    ],
)
def test_conversations_train_all_weights_if_they_fit_and_else_lora(
    instances: str,
    usual: tuple[int | None, str],
    is_compared: bool,
    tmp_path: Path,
) -> None:
    """Weights of 4 bits are for what fits in no other way; LoRA stands beside all weights."""
    model = tmp_path / "model.json"
    model.write_text(json.dumps(MODELS["Llama 3.1 8B"]["config"]))
    chats = REPO_ROOT / "suites" / "finetune_chat"
    file = tmp_path / "suite.yaml"
    paths = (f"--data={chats / 'chats.jsonl'}", f"--chat-template={chats / 'chat.jinja'}")
    types = [f"--instance={instance}" for instance in instances.split()]
    limits = ("--examples=20000", "--max-usd=500", *types, "--format=json")
    asked = ["init", str(file), f"--model={model}", *paths, *limits]
    done = CliRunner().invoke(commands, asked, env={"HOME": str(tmp_path)})
    assert done.exit_code == 0, (done.stderr, done.exception)
    cells = [cell["settings"] for cell in json.loads(done.stdout)["cells"]]
    ranks = [cell["adapter"] and cell["adapter"]["rank"] for cell in cells]
    assert (ranks[0], cells[0]["base_weights"]) == usual
    assert set(ranks) == ({None, 16} if is_compared else {16})
    assert "task causal-lm: the data has messages" in done.stderr


def test_the_size_of_a_model_with_linear_attention_is_the_sum_of_all_its_layers() -> None:
    config = {**MODELS["Qwen 3.5 4B"]["config"], "num_hidden_layers": 12, "vocab_size": 4096}
    text = {"task": "causal-lm", "dataset": {"path": "none", "format": "synthetic"}, "examples": 9}
    workload = parse_part({**text, "model": {"config": config}, "sequence_length": 128}, Workload)
    shape = measure_shape(workload)
    assert shape is not None
    whole = measure_size(workload.task, model_config(workload, None, model_path=None), 128)
    assert (shape.parameters, shape.flops_per_token) == (whole.parameters, whole.flops_per_token)
