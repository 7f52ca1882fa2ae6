"""Every strategy has its traits, and the rules follow from them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from traindyno.core.suite.choices import TRAITS, Strategy, strategies_with

REPO_ROOT = Path(__file__).resolve().parents[4]
PACKAGES = ("traindyno", "training", "infra", "localcloud", "lambdas")
TABLES = {
    "traindyno/core/suite/choices.py": "the traits",
    "traindyno/core/run/settings.py": "the settings that a strategy uses, and the default",
    "training/strategies/__init__.py": "the class of each strategy",
}
NAMES = {
    "traindyno/slices/imported/client.py": "DDP and FSDP are the axes of a run of a built-in task",
    "traindyno/slices/imported/job.py": (
        "DDP, SMDDP and SINGLE are what launchers of other jobs start"
    ),
    "traindyno/slices/estimates/candidates.py": (
        "SINGLE, DDP, ZERO1 and FSDP are the candidates of a first suite"
    ),
    "traindyno/core/suite/preparation.py": "SINGLE is the strategy of the job that prepares data",
}
MEMBERS = {str(strategy) for strategy in Strategy}


def test_every_strategy_has_its_traits() -> None:
    assert set(TRAITS) == set(Strategy)


def test_strategies_are_found_by_a_trait_in_their_order() -> None:
    assert strategies_with(lambda traits: traits.runs_with_xla) == (Strategy.SINGLE, Strategy.DDP)
    split = (Strategy.FSDP, Strategy.TENSOR, Strategy.PIPELINE, Strategy.MESH)
    assert strategies_with(lambda traits: traits.is_composition) == split


def test_a_stand_in_strategy_runs_without_sagemakers_library() -> None:
    needs_library = strategies_with(lambda traits: traits.sagemaker_collectives)
    assert (
        strategies_with(lambda traits: traits.stand_in is not None)
        == needs_library
        == (Strategy.SMDDP,)
    )
    assert not TRAITS[TRAITS[Strategy.SMDDP].stand_in or Strategy.SMDDP].sagemaker_collectives


def members_in(node: ast.AST) -> Iterator[str]:
    """The members of Strategy that this code names."""
    for part in ast.walk(node):
        if (
            isinstance(part, ast.Attribute)
            and isinstance(part.value, ast.Name)
            and part.value.id == "Strategy"
        ):
            yield part.attr


def branches_in(node: ast.AST) -> Iterator[str]:
    """The comparisons and patterns that ask which strategy it is, also by the member's text."""
    for part in ast.walk(node):
        if isinstance(part, ast.Compare | ast.match_case):
            asked = part.pattern if isinstance(part, ast.match_case) else part
            texts = {text.value for text in ast.walk(asked) if isinstance(text, ast.Constant)}
            is_by_text = texts & MEMBERS and "strategy" in ast.unparse(asked)
            if is_by_text or any(members_in(asked)):
                yield ast.unparse(asked)


@pytest.mark.parametrize(
    "branch",
    [
        "settings.strategy is Strategy.DDP",
        "strategy in (Strategy.FSDP, Strategy.ZERO1)",
        "settings.strategy == 'smddp'",
        "match strategy:\n    case Strategy.DDP: pass",
    ],
)
def test_a_branch_on_a_strategy_is_found(branch: str) -> None:
    assert len([*branches_in(ast.parse(branch))]) == 1


def test_no_module_asks_for_its_strategy_and_only_tables_name_one() -> None:
    texts = {
        str(path.relative_to(REPO_ROOT)): path.read_text()
        for package in PACKAGES
        for path in (REPO_ROOT / package).rglob("*.py")
    }
    sources = {path: ast.parse(text) for path, text in texts.items() if "trategy" in text}
    assert [
        f"{path}: {branch}" for path, source in sources.items() for branch in branches_in(source)
    ] == []
    assert {
        path for path, source in sources.items() if any(members_in(source))
    } == TABLES.keys() | NAMES.keys()
