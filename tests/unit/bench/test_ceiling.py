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
    """``slowdowns``: one factor a round for all sides.

    ``disturbance``: a further one for ours in the first round.
    """
    result = RaceResult(
        our_step_seconds=(
            ours * slowdowns[0] * disturbance,
            *(ours * each for each in slowdowns[1:]),
        ),
        their_step_seconds=tuple(theirs * each for each in slowdowns),
        bare_step_seconds=tuple(bare * each for each in slowdowns),
        our_tokens_per_second=(),
        flops_per_token=1.0,
        parameters=1,
    )
    (found,) = (each for each in ceiling_figures(CASE, result) if "share" in each.name)
    return found


@pytest.mark.parametrize("slowdowns", [[1, 1, 1], [1, 1, 2, 2], [1, 3, 1, 1.9], [2, 1, 1, 2]])
@pytest.mark.parametrize("disturbance", [1.0, 0.7, 1.5])
def test_a_machine_that_changes_its_speed_between_rounds_changes_no_share(
    slowdowns: list[float], disturbance: float
) -> None:
    # 10 ms of Trainer's, 8 ms at least, 8.5 ms ours: 1.5 of 2 ms are saved
    found = share_of(slowdowns, ours=8.5e-3, theirs=10e-3, bare=8e-3, disturbance=disturbance)
    assert found.value == pytest.approx(75.0)
    assert found.is_met is False


@pytest.mark.parametrize(
    ("bare", "is_known"), [(9.5e-3, True), (9.6e-3, False), (9.9e-3, False), (10.1e-3, False)]
)
def test_share_is_unknown_where_less_than_the_noise_can_be_saved(
    bare: float, is_known: bool
) -> None:
    # 10 ÷ 9.5 is a ceiling of 1.053, 10 ÷ 9.6 one of 1.042
    found = share_of([1, 1], ours=9.4e-3, theirs=10e-3, bare=bare)
    assert (found.value is not None) is is_known
    assert (found.budget is not None) is is_known
