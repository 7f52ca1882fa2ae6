"""Costs on spot from an assumed discount and interruption rate."""

from decimal import Decimal

from traindyno.core.costs.spot import SpotAssumption, spot_cost_text


def test_the_cost_by_hand() -> None:
    # $100 on demand, 60 % off: $40. A job of 2 h meets 0.1 x 2 = 0.2 interruptions, each repeats half of it: + 10 %
    assumed = SpotAssumption(discount=0.6, interruptions_per_hour=0.1)
    assert assumed.usd(Decimal(100), 7200) == Decimal(44)


def test_the_text_says_what_is_assumed() -> None:
    assumed = SpotAssumption(discount=0.6, interruptions_per_hour=0.1)
    assert spot_cost_text(Decimal(100), 7200, assumed) == (
        "$44.00 on spot instead of $100.00 on demand; assumed: a discount of 60 % and 0.1 interruptions per hour of a"
        " job"
    )
    assert spot_cost_text(None, 7200, assumed).startswith("unknown on spot instead of unknown on demand")
