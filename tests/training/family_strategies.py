"""Trains 26 families of transformers under strategies and compositions, and compares them with one
process.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.training.small_models import small_config
from tests.training.strategy_cases import Case
from tests.training.strategy_rows import FAMILIES, MESHES, MESHES_OF_EIGHT, TOLERANCES
from tests.training.strategy_runs import differences, train_cases
from tests.training.strategy_trial import Trained, train
from traindyno.core.suite.choices import Precision, Strategy
from training.models.config_numbers import NOT_BUILT
from training.models.tensor_plans import why_no_plan
from training.process.process_group import Topology

HYBRID = "hybrid shard × tensor"
# One of each kind: windows, chunks, experts, states instead of attention, relative positions, their
# own attention.
TRAINED = (
    *(
        f"causal-lm/{kind}"
        for kind in ("bloom", "cohere2", "deepseek_v3", "falcon", "gemma2", "gemma3_text", "gpt2")
    ),
    *(
        f"causal-lm/{kind}"
        for kind in ("gpt_neo", "gpt_oss", "granite", "llama", "llama4_text", "mamba2", "mistral")
    ),
    *(f"causal-lm/{kind}" for kind in ("mixtral", "opt", "phi3", "qwen3_moe", "qwen3_next")),
    *(
        f"masked-lm/{kind}"
        for kind in ("albert", "bert", "deberta-v2", "esm", "longformer", "modernbert", "roberta")
    ),
)


@dataclass(frozen=True, slots=True)
class Way:
    """A strategy or composition with which a family is trained."""

    processes: int
    options: Mapping[str, Any]


STRATEGIES = {name: Way(2, options) for name, options in FAMILIES.items()} | {
    "zero1": Way(2, {"strategy": Strategy.ZERO1})  # the optimizer of the others
}
COMPOSITIONS = {
    name: Way(4, {"strategy": Strategy.MESH, **degrees}) for name, degrees in MESHES.items()
}
COMPOSITIONS |= {HYBRID: Way(8, {"strategy": Strategy.MESH, **MESHES_OF_EIGHT[HYBRID]})}
TRIED = STRATEGIES | COMPOSITIONS
IN_TURN = tuple(name for name, way in TRIED.items() if way.processes <= 4)


def some_strategies() -> dict[str, tuple[str, ...]]:
    """Every family with one strategy, in turn."""
    return {name: (IN_TURN[number % len(IN_TURN)],) for number, name in enumerate(TRAINED)}


def all_strategies() -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(TRAINED, tuple(TRIED))


def outcomes(tried: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """By model and strategy: "equal", "refused: why", or what differs."""
    cases: defaultdict[int, dict[str, Case]] = defaultdict(dict)
    for name, strategies in tried.items():
        for strategy in strategies:
            way = TRIED[strategy]
            cases[way.processes][f"{strategy} {name}"] = Case(
                model=name, options=way.options, layer_count=None
            )
    trained: dict[str, Trained | str] = {}
    for processes, some in cases.items():
        trained |= train_cases(some, "main", processes)
    return {
        name: {strategy: _outcome(trained[f"{strategy} {name}"], name) for strategy in strategies}
        for name, strategies in tried.items()
    }


def _outcome(trained: Trained | str, name: str) -> str:
    if isinstance(trained, str):
        return trained
    allowed = TOLERANCES[Precision.FP32]
    loss, parameter = differences(trained, _one_process(name))
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
