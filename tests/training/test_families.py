"""The families of transformers train as transformers' own models do.

``make nightly`` tries every family.
"""

from dataclasses import replace

import pytest
import torch
import transformers
from transformers import Trainer

from tests.nightly import NIGHTLY
from tests.training.family_page import (
    FAMILY_FILE,
    NAMES,
    STRATEGY_FILE,
    page,
    recorded_outcomes,
    row,
    section,
    version_line,
)
from tests.training.family_strategies import (
    TRAINED,
    all_strategies,
    outcomes,
    some_strategies,
    with_tensor_plan,
)
from tests.training.family_sweep import compare, small_model
from tests.training.result_files import read_rows
from tests.training.strategy_cases import WORKLOADS, Case, blueprint_of, global_batch, workload
from tests.training.strategy_table import DOCUMENT
from traindyno.core.run.settings import Settings
from traindyno.core.suite.suite_file import parse_part
from training.errors import RunError
from training.models.config_numbers import most_positions, needed_positions
from training.models.flops import NOT_COUNTED
from training.models.gradients import leaves_parameters_out
from training.models.model_check import check_model
from training.models.objective import Objective
from training.models.optimizer import build_optimizer, mark_decayed

pytestmark = pytest.mark.usefixtures("of_one_thread")

LEAST_EQUAL = 120
SHARDED = with_tensor_plan(NAMES) if NIGHTLY else ()
REQUIREMENTS = DOCUMENT.parents[1] / "requirements.txt"
SOME_POSITIONED = (
    *(
        f"causal-lm/{kind}"
        for kind in ("bart", "gemma3", "gpt2", "llama4", "prophetnet", "roberta")
    ),
    *(f"masked-lm/{kind}" for kind in ("bert", "esm", "longformer", "mpnet", "roberta", "xmod")),
)


@pytest.mark.parametrize("name", NAMES if NIGHTLY else TRAINED)
def test_a_family_trains_as_its_row_says(name: str) -> None:
    assert row(name, compare(name)) in read_rows(FAMILY_FILE)


@pytest.mark.parametrize("name", NAMES if NIGHTLY else TRAINED)
def test_weight_decay_is_of_the_same_parameters_as_in_the_trainer(name: str) -> None:
    try:
        model = blueprint_of(Case(model=name, layer_count=None)).model
    except (RunError, *NOT_COUNTED) as error:
        pytest.skip(str(error))
    wanted = Trainer.get_decay_parameter_names(None, model)  # type: ignore[arg-type]
    mark_decayed(model)
    settings = parse_part(
        {"instance": "local.cpu", "strategy": "single", "weight_decay": 0.5}, Settings
    )
    groups = build_optimizer(model.parameters(), settings, 0.1).param_groups
    decayed = {
        id(parameter)
        for group in groups
        for parameter in group["params"]
        if group["weight_decay"] == 0.5
    }
    assert [name for name, parameter in model.named_parameters() if id(parameter) in decayed] == [
        name
        for name, parameter in model.named_parameters()
        if name in wanted and parameter.requires_grad
    ]


@pytest.fixture(scope="module")
def divided() -> dict[str, dict[str, str]]:
    return outcomes(all_strategies() if NIGHTLY else some_strategies())


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", TRAINED)
def test_a_family_trains_divided_as_its_row_says(
    name: str, divided: dict[str, dict[str, str]]
) -> None:
    by_way = divided[name]
    recorded = recorded_outcomes(name)
    assert by_way == {way: recorded[way] for way in by_way}


@pytest.fixture(scope="module")
def sharded() -> dict[str, dict[str, str]]:
    return outcomes(dict.fromkeys(SHARDED, ("tensor",)))


@pytest.mark.parametrize("name", SHARDED)
def test_a_family_with_a_tensor_plan_trains_as_one_process_or_is_refused(
    name: str, sharded: dict[str, dict[str, str]]
) -> None:
    outcome = sharded[name]["tensor"]
    assert outcome == "equal" or outcome.startswith("refused: "), outcome


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("causal-lm/gpt2", False),
        ("causal-lm/llama", False),
        ("causal-lm/mixtral", False),
        ("masked-lm/bert", False),
        ("masked-lm/esm", True),
        ("masked-lm/longformer", True),
    ],
)
def test_parameters_without_a_gradient_are_searched_for_only_in_models_with_some(
    name: str, expected: bool
) -> None:
    case = Case(model=name, layer_count=None, is_padded=False)
    model = blueprint_of(case).materialise(torch.device("cpu"))
    random_before = torch.get_rng_state()
    assert leaves_parameters_out(model, torch.device("cpu")) is expected
    assert torch.equal(torch.get_rng_state(), random_before)
    loss = Objective(model.train(), WORKLOADS[name][0])(**global_batch(name, 0, is_padded=False))
    loss.backward()
    assert any(parameter.grad is None for parameter in model.parameters()) is expected


@pytest.mark.parametrize("name", NAMES if NIGHTLY else SOME_POSITIONED)
def test_the_longest_accepted_sequence_has_positions(name: str) -> None:
    """And a model with a limit refuses one token more."""
    blueprint = small_model(name)
    limit = most_positions(blueprint.config)
    if limit is None:
        pytest.skip("any length will do")
    length = 2 * limit - needed_positions(blueprint.config, limit)
    asked = replace(workload(Case(model=name, layer_count=None)), sequence_length=length)
    assert list(check_model(asked, [], model_path=None)) == []
    assert "more positions" in str(
        next(iter(check_model(replace(asked, sequence_length=length + 1), [], model_path=None)))
    )
    tokens = torch.full((2, length), 7)
    model = blueprint.materialise(torch.device("cpu")).eval()
    try:
        with torch.no_grad():
            logits = model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).logits
    except RuntimeError:
        pytest.skip("transformers' own model fails at any length")
    assert logits.shape[:2] == tokens.shape


def test_the_file_has_every_family_of_the_pinned_version() -> None:
    assert version_line() in DOCUMENT.read_text()
    assert (
        f"transformers=={transformers.__version__}"
        in REQUIREMENTS.read_text().replace(" \\\n", "\n").splitlines()
    )
    assert [f"{task}/{kind}" for kind, task, *_ in read_rows(FAMILY_FILE)] == NAMES


def test_the_page_sums_up_the_files() -> None:
    assert page() in DOCUMENT.read_text()
    assert section() in DOCUMENT.read_text()


def test_no_family_trains_as_another_model() -> None:
    rows = [*read_rows(FAMILY_FILE), *read_rows(STRATEGY_FILE)]
    assert not any("differ by" in text for cells in rows for text in cells)
    equal = [cells for cells in read_rows(FAMILY_FILE) if cells[2:4] == ["equal", "equal"]]
    assert len(equal) >= LEAST_EQUAL
