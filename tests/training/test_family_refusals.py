"""What can't divide a family of transformers says why and what would be accepted, and is no error
of PyTorch.

``make nightly`` asks every family; ``make test`` some of each kind.
"""

from typing import Any

import pytest
from transformers import PreTrainedConfig

from tests.nightly import NIGHTLY
from tests.training.family_page import NAMES
from tests.training.family_sweep import small_model
from tests.training.small_models import small_config
from tests.training.strategy_cases import Case
from tests.training.strategy_trial import make_setup
from traindyno.core.run.processes import TensorDivision
from traindyno.core.suite.choices import Strategy, Task
from training.errors import WorkloadError
from training.memory.fake_world import fake_process_group
from training.models.config_numbers import NOT_BUILT
from training.models.division_check import check_cut, check_division
from training.models.pipeline_stages import cut
from training.process.process_group import Topology
from training.strategies import build_strategy

pytestmark = pytest.mark.usefixtures("of_one_thread")

# With a plan and without one, with a wrong one, with experts, that can't be cut.
SOME = (
    *(f"causal-lm/{kind}" for kind in ("apertus", "gpt2", "llama4", "mixtral", "opt")),
    "masked-lm/longformer",
)
FAMILIES = NAMES if NIGHTLY else SOME
# The number of processes, and how they are divided.
MESHES: dict[str, tuple[int, dict[str, Any]]] = {
    "tensor, 3": (3, {"strategy": Strategy.TENSOR}),
    "shard x tensor": (4, {"shard_degree": 2, "tensor_degree": 2}),
    "pipeline x tensor": (4, {"pipeline_degree": 2, "tensor_degree": 2}),
    "shard x pipeline": (4, {"shard_degree": 2, "pipeline_degree": 2}),
    "more stages than blocks": (100, {"shard_degree": 2, "pipeline_degree": 50}),
}


def config_of(kind: str) -> PreTrainedConfig:
    try:
        return small_config(kind)
    except NOT_BUILT:
        pytest.skip("transformers makes no small configuration of it")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_tensor_degree_is_accepted_or_refused_with_possible_ones(name: str) -> None:
    task, _, kind = name.partition("/")
    for degree in (2, 3, 5):
        problem = check_division(Task(task), config_of(kind), TensorDivision(degree=degree))
        assert problem is not None or degree == 2, "3 and 5 divide no numbers of a small model"
        assert (
            problem is None
            or "; expected " in problem.message
            or "transformers can't build" in problem.message
        )


@pytest.mark.parametrize("name", FAMILIES)
def test_a_cut_is_refused_before_the_first_job_as_the_job_would(name: str) -> None:
    task, _, kind = name.partition("/")
    problem = check_cut(Task(task), config_of(kind), 2)
    try:
        cut(small_model(name).model, 2, Task(task), None)
    except WorkloadError as error:
        assert problem is not None
        assert problem.message == str(error)
        assert "; expected " in problem.message
    else:
        assert problem is None


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("mesh", MESHES)
def test_a_family_is_placed_on_a_mesh_or_refused_with_possible_ones(mesh: str, name: str) -> None:
    processes, degrees = MESHES[mesh]
    case = Case(model=name, options={"strategy": Strategy.MESH, **degrees}, layer_count=None)
    blueprint = small_model(name, **case.options)
    topology = Topology(world_size=processes, local_world_size=processes)
    with fake_process_group(topology):
        try:
            build_strategy(make_setup(case, topology)).place(blueprint)
        except WorkloadError as error:
            assert "; expected " in str(error)
            return
    assert mesh not in ("tensor, 3", "more stages than blocks")
