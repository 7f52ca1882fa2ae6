"""What can't divide a family of transformers says why and what is nearest, and is no error of PyTorch.

``make chaos`` asks every family; ``make test`` some of each kind.
"""

import os
from collections.abc import Iterator

import pytest

from tests.training.family_page import NAMES
from tests.training.family_sweep import one_thread
from tests.training.small_models import small_config
from tests.training.strategy_cases import Case, blueprint_of
from traindyno.core.suite.choices import Task
from traindyno.core.suite.processes import TensorDivision
from training.errors import WorkloadError
from training.models.model_check import NOT_BUILT
from training.models.tensor_check import check_division
from training.strategies.pipeline_stages import cut

EVERY_FAMILY = bool(os.environ.get("TRAINDYNO_EVERY_FAMILY"))  # make chaos sets it
SOME = (
    *(
        f"causal-lm/{kind}"
        for kind in ("apertus", "dots3_note_text", "gpt2", "granite", "llama4", "mamba2", "mixtral", "opt")
    ),
    *(f"masked-lm/{kind}" for kind in ("albert", "longformer", "modernbert")),
)
FAMILIES = NAMES if EVERY_FAMILY else SOME
MANY_STAGES = 50


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


@pytest.mark.parametrize("name", FAMILIES)
def test_a_tensor_degree_is_possible_or_refused_with_what_is(name: str) -> None:
    task, _, kind = name.partition("/")
    try:
        config = small_config(kind)
    except NOT_BUILT:
        pytest.skip("transformers makes no small configuration of it")
    for degree in (2, 3, 5):
        problem = check_division(Task(task), config, TensorDivision(degree=degree))
        assert problem is None or "expected" in problem.message or "can't build" in problem.message
        assert problem is None or kind.split("_")[0] in problem.message, "it names the model type"
        assert problem or degree == 2, "no small model has numbers that 3 or 5 divide"


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("stage_count", [2, MANY_STAGES])
def test_stages_are_possible_or_refused_with_what_is(name: str, stage_count: int) -> None:
    try:
        model = blueprint_of(Case(model=name, layer_count=None)).model
    except (*NOT_BUILT, WorkloadError):
        pytest.skip("transformers builds no small model of it")
    try:
        stages = cut(model, stage_count, Task(name.partition("/")[0]), None)
    except WorkloadError as error:
        assert "expected" in str(error)
        return
    assert len(stages) == stage_count == 2
