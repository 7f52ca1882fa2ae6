"""Trains 26 families of transformers under strategies of two processes, and compares them with one process."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import torch

from tests.training.forked_jobs import run_forked
from tests.training.small_models import small_config
from tests.training.strategy_cases import Case
from tests.training.strategy_rows import FAMILIES, TOLERANCES
from tests.training.strategy_runs import WORKER, differences
from tests.training.strategy_trial import Trained, train
from traindyno.core.suite.choices import Precision, Strategy
from training.models.model_check import NOT_BUILT
from training.models.tensor_plans import why_no_plan
from training.process.topology import Topology

TRIED = ("ddp", "fsdp", "zero1", "tensor", "pipeline")
OPTIONS = {**FAMILIES, "zero1": {"strategy": Strategy.ZERO1}}  # the optimizer of the others
# One of each kind: windows, chunks, experts, states instead of attention, relative positions, their own attention.
TRAINED = (
    *(f"causal-lm/{kind}" for kind in ("bloom", "cohere2", "deepseek_v3", "falcon", "gemma2", "gemma3_text", "gpt2")),
    *(f"causal-lm/{kind}" for kind in ("gpt_neo", "gpt_oss", "granite", "llama", "llama4_text", "mamba2", "mistral")),
    *(f"causal-lm/{kind}" for kind in ("mixtral", "opt", "phi3", "qwen3_moe", "qwen3_next")),
    *(f"masked-lm/{kind}" for kind in ("albert", "bert", "deberta-v2", "esm", "longformer", "modernbert", "roberta")),
)
# These cut a model by its layers' kinds. The others treat every model alike.
CUTTING, ALIKE = ("tensor", "pipeline"), ("ddp", "fsdp", "zero1")


def some_strategies() -> dict[str, tuple[str, ...]]:
    """Every family with the strategies that cut it, and with one of the others in turn."""
    return {name: (ALIKE[number % len(ALIKE)], *CUTTING) for number, name in enumerate(TRAINED)}


def all_strategies() -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(TRAINED, TRIED)


def outcomes(tried: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """By model and strategy: "equal", "refused: why", or what differs."""
    cases = {
        f"{strategy} {name}": Case(model=name, options=OPTIONS[strategy], layer_count=None)
        for name, strategies in tried.items()
        for strategy in strategies
    }
    with tempfile.TemporaryDirectory() as scratch:
        cases_path, results_path = Path(scratch) / "cases.pt", Path(scratch) / "results.pt"
        torch.save(cases, cases_path)
        end = run_forked(Path(scratch), WORKER, str(cases_path), str(results_path), processes=2, timeout_seconds=480)
        assert end.exit_code == 0, end.output[-6000:]
        results: dict[str, Trained | str] = torch.load(results_path, weights_only=False)
    return {
        name: {strategy: _outcome(results[f"{strategy} {name}"], name) for strategy in strategies}
        for name, strategies in tried.items()
    }


def _outcome(found: Trained | str, name: str) -> str:
    if isinstance(found, str):
        return found
    allowed = TOLERANCES[Precision.FP32]
    loss, parameter = differences(found, _one_process(name))
    if loss <= allowed.loss and parameter <= allowed.parameter:
        return "equal"
    return f"losses differ by {loss:.2g}, weights by {parameter:.2g}"


@cache
def _one_process(name: str) -> Trained:
    return train(Case(model=name, layer_count=None), Topology())


def with_tensor_plan(names: Iterable[str]) -> tuple[str, ...]:
    """The families for which strategy tensor has a plan."""
    return tuple(name for name in names if _has_plan(name.partition("/")[2]))


def _has_plan(kind: str) -> bool:
    try:
        return why_no_plan(small_config(kind)) is None
    except NOT_BUILT:
        return False
