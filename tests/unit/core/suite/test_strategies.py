"""Every strategy has its traits, and the rules follow from them."""

from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.strategies import TRAITS, strategies_with


def test_every_strategy_has_its_traits() -> None:
    assert set(TRAITS) == set(Strategy)


def test_strategies_are_found_by_a_trait_in_their_order() -> None:
    assert strategies_with(lambda traits: traits.runs_with_xla) == (Strategy.SINGLE, Strategy.DDP)
    split = strategies_with(lambda traits: not traits.holds_whole_model)
    assert split == (Strategy.FSDP, Strategy.TENSOR, Strategy.PIPELINE)
    assert strategies_with(lambda traits: not traits.resumes_resharded) == (Strategy.TENSOR, Strategy.PIPELINE)
