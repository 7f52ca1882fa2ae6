"""The ceiling of a race: how much of the time that Trainer could save is saved."""

import pytest

from bench.figures import Figure
from bench.loop_cases import SIZES, same_work_case
from bench.race_case import RaceResult
from bench.training_loop import ceiling_figures

CASE = same_work_case(SIZES[0], is_quick=True)


def share_of(
    slowdowns: list[float], *, ours: float, theirs: float, bare: float, disturbance: float = 1.0
) -> Figure:
    """The share of the ceiling, with one factor a round for all sides and a further one for ours in
    the first round.
    """
    result = RaceResult(
        our_step_seconds=(
            ours * slowdowns[0] * disturbance,
            *(ours * slowdown for slowdown in slowdowns[1:]),
        ),
        their_step_seconds=tuple(theirs * slowdown for slowdown in slowdowns),
        bare_step_seconds=tuple(bare * slowdown for slowdown in slowdowns),
        our_tokens_per_second=(),
        flops_per_token=1.0,
        parameters=1,
    )
    (figure,) = (
        candidate for candidate in ceiling_figures(CASE, result) if "share" in candidate.name
    )
    return figure


@pytest.mark.parametrize("slowdowns", [[1, 1, 1], [1, 1, 2, 2], [1, 3, 1, 1.9], [2, 1, 1, 2]])
@pytest.mark.parametrize("disturbance", [1.0, 0.7, 1.5])
def test_a_machine_changing_its_speed_between_rounds_changes_no_share(
    slowdowns: list[float], disturbance: float
) -> None:
    # 10 ms of Trainer's, 8 ms at least, 8.5 ms ours: 1.5 of 2 ms are saved
    figure = share_of(slowdowns, ours=8.5e-3, theirs=10e-3, bare=8e-3, disturbance=disturbance)
    assert figure.value == pytest.approx(75.0)
    assert figure.is_met is False


@pytest.mark.parametrize(
    ("bare", "is_known"), [(9.5e-3, True), (9.6e-3, False), (9.9e-3, False), (10.1e-3, False)]
)
def test_share_is_unknown_for_savings_below_the_noise(bare: float, is_known: bool) -> None:
    # 10 ÷ 9.5 is a ceiling of 1.053, 10 ÷ 9.6 one of 1.042
    figure = share_of([1, 1], ours=9.4e-3, theirs=10e-3, bare=bare)
    assert (figure.value is not None) is is_known
    assert (figure.budget is not None) is is_known
