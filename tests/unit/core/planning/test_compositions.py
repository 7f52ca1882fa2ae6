"""Which compositions of strategy mesh are possible, and the cautions about degrees."""

from dataclasses import replace
from math import log2
from typing import Any

import pytest

from tests.unit.suites import script_document, small_document
from traindyno.core.planning.compositions import (
    MOST_PROPOSALS,
    Proposal,
    possible_compositions,
    proposed_degrees,
    sorted_proposals,
)
from traindyno.core.planning.memory import MemoryEstimate, MemoryFinding, why_not_estimated
from traindyno.core.planning.plan import composition_notes
from traindyno.core.suite.checks.combinations import find_impossible
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.processes import global_batch_size, world_size
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.suite_file import parse_settings, parse_workload
from traindyno.core.suite.workload import Model

LLAMA = {"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
WORKLOAD = parse_workload({**small_document()["workload"], "model": {"config": LLAMA}, "tokenizer": {"path": "gpt2"}})


def cell(**settings: Any) -> Cell:
    values = {"instance": "ml.p4d.24xlarge", "strategy": "fsdp", "batch_size_per_device": 2, **settings}
    return Cell(cell_id="0123abcd", label="x", settings=parse_settings(values))


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("instance", ["local.cpu", "ml.g5.12xlarge", "ml.g5.xlarge", "ml.p4d.24xlarge"])
def test_every_proposal_is_accepted_and_trains_the_same_batch(instance: str, count: int, batch: int) -> None:
    asked = cell(instance=instance, instance_count=count, batch_size_per_device=batch)
    found = possible_compositions(asked, WORKLOAD)
    devices = {"ml.g5.12xlarge": 4, "ml.p4d.24xlarge": 8}.get(instance, 1)
    assert len(found) == len(set(found)) <= MOST_PROPOSALS
    assert bool(found) == (count * devices > 1)
    for settings in found:
        degrees = proposed_degrees(settings)
        assert find_impossible(replace(asked, settings=settings), WORKLOAD) == []
        assert degrees.processes == count * devices
        assert global_batch_size(settings, degrees.processes) == count * devices * batch
        assert log2(degrees.tensor).is_integer()
        assert log2(degrees.pipeline).is_integer()
        assert devices % degrees.tensor == 0 or instance == "local.cpu"


def test_those_that_divide_a_replica_least_are_first() -> None:
    found = [proposed_degrees(each) for each in possible_compositions(cell(instance_count=2), WORKLOAD)]
    assert [(each.replicate, each.shard, each.tensor, each.pipeline) for each in found] == [
        (1, 16, 1, 1), (2, 8, 1, 1), (1, 8, 2, 1), (2, 4, 2, 1), (1, 8, 1, 2), (2, 4, 1, 2), (1, 4, 4, 1), (2, 2, 4, 1)
    ]  # fmt: skip


def test_those_that_fit_are_first_and_unknown_ones_last() -> None:
    gigabytes = [None, 50, 30, None, 20]
    given = [
        Proposal(degrees=proposed_degrees(settings), settings=settings, finding=finding_of(size))
        for settings, size in zip(possible_compositions(cell(instance_count=2), WORKLOAD), gigabytes, strict=False)
    ]
    assert sorted_proposals(given) == tuple(given[place] for place in (2, 4, 1, 0, 3)), "an A100 has 40 GB"


def finding_of(gigabytes: int | None) -> MemoryFinding:
    if gigabytes is None:
        return MemoryFinding(why_unknown="the estimate failed")
    peak = gigabytes * 10**9
    return MemoryFinding(
        estimate=MemoryEstimate(peak_bytes=peak, parameter_bytes=1, gradient_bytes=1, optimizer_bytes=2)
    )


def test_blocks_limit_the_pipeline_degree() -> None:
    few = replace(WORKLOAD, model=replace(WORKLOAD.model, config={**LLAMA, "num_hidden_layers": 2}))  # type: ignore[type-var]
    found = possible_compositions(cell(instance="ml.g5.xlarge", instance_count=8, batch_size_per_device=4), few)
    assert {proposed_degrees(each).pipeline for each in found} == {1, 2}


@pytest.mark.parametrize("name", ["num_key_value_heads", "num_local_experts", "num_experts", "n_routed_experts"])
def test_heads_of_keys_and_experts_limit_the_tensor_degree(name: str) -> None:
    few = replace(WORKLOAD, model=replace(WORKLOAD.model, config={**LLAMA, name: 2}))  # type: ignore[type-var]
    found = possible_compositions(cell(), few)
    assert {proposed_degrees(each).tensor for each in found} == {1, 2}


def test_a_script_divides_its_model_itself() -> None:
    script = parse_suite(script_document())
    assert world_size(cell(instance_count=2).settings) == 16
    assert possible_compositions(cell(instance_count=2), script.workload) == ()


@pytest.mark.parametrize("count", [3, 5, 7, 12, 15])
@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "gpt2", "n_embd": 48, "n_head": 3, "n_layer": 7},
        {"model_type": "mixtral", "num_local_experts": 3, "num_hidden_layers": 4},
        {"model_type": "bert", "num_hidden_layers": 5, "num_attention_heads": 12},
        None,
    ],
    ids=["3 heads", "3 experts", "encoder", "named"],
)
def test_odd_numbers_are_divided_by_what_divides_them(config: dict[str, Any] | None, count: int) -> None:
    model = Model(path="me/model") if config is None else Model(config=config)
    found = possible_compositions(
        cell(instance="local.cpu", instance_count=count, batch_size_per_device=4), replace(WORKLOAD, model=model)
    )
    degrees = [proposed_degrees(each) for each in found]
    assert {each.processes for each in degrees} == {count}
    heads = 1 if config and "bert" not in config["model_type"] else 4
    assert {each.tensor for each in degrees} == {each for each in (1, 2, 4) if count % each == 0 and heads % each == 0}
    assert {each.pipeline for each in degrees} == {each for each in (1, 2, 4) if count % each == 0}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"strategy": "tensor", "tensor_degree": 8, "instance_count": 2}, []),
        ({"strategy": "tensor", "instance": "local.cpu", "instance_count": 4}, []),
        ({"strategy": "mesh", "pipeline_degree": 16, "instance_count": 2}, []),
        (
            {"strategy": "tensor", "tensor_degree": 16, "instance_count": 2},
            ["a tensor group of 16 processes spans instances of 8 devices"],
        ),
        (
            {"strategy": "mesh", "tensor_degree": 3, "instance_count": 3},
            ["a tensor group of 3 processes spans instances of 8 devices", "tensor_degree 3 is no power of two"],
        ),
    ],
)
def test_degrees_that_people_avoid_get_a_caution(settings: dict[str, Any], said: list[str]) -> None:
    notes = list(composition_notes([cell(**settings)]))
    assert len(notes) == len(said)
    for note, part in zip(notes, said, strict=True):
        assert note.startswith("cell x (0123abcd): ")
        assert part in note


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_every_proposal_has_an_estimate(count: int) -> None:
    found = possible_compositions(cell(instance_count=count, batch_size_per_device=4), WORKLOAD)
    assert any(proposed_degrees(each).pipeline > 1 for each in found)
    assert {why_not_estimated(WORKLOAD, each) for each in found} == {None}
