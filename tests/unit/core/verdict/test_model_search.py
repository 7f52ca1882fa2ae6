"""Search by a model: what is measured round by round, when it ends, and what the verdict says of dropped cells."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.simulations.response_surface import Surface, SurfaceCell
from tests.simulations.surface_lab import draw_result, play
from tests.unit.run_samples import make_cell
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.loss_parity import LossSpread
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import GoalKind, Precision, Search
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.verdict.model_search import runs_at_once
from traindyno.core.verdict.rounds import last_round, plan_round
from traindyno.core.verdict.verdict import Finding, judge, parse_verdict, verdict_document
from traindyno.core.verdict.verdict_text import describe_verdict

BATCHES, WORKERS, PRECISIONS = (4, 8, 16, 32), (0, 4, 8), ("fp32", "bf16")
Seconds = Callable[[int, int, str], float | None]


def smooth(batch: int, workers: int, precision: str) -> float:
    waiting = 1.5 if workers == 0 else 1 + 1 / (10 * workers)
    return 100 / math.sqrt(batch) * waiting * (0.7 if precision == "bf16" else 1.0)


def surface_of(seconds: Seconds, *, variation: float = 0.01) -> Surface:
    cells = [
        SurfaceCell(
            settings={"batch_size_per_device": batch, "loader_workers": workers, "precision": precision},
            seconds=seconds(batch, workers, precision),
            billable_seconds=100.0,
            variation=variation,
            outcome=Outcome.COMPLETED if seconds(batch, workers, precision) else Outcome.OUT_OF_MEMORY,
        )
        for batch in BATCHES
        for workers in WORKERS
        for precision in PRECISIONS
    ]
    return Surface(
        name="test",
        origin="generated",
        source="",
        goal=GoalKind.FASTEST,
        training={"instance": "ml.p4d.24xlarge"},
        cells=tuple(cells),
    )


SMOOTH = surface_of(smooth)
SUITE = SMOOTH.suite(Search.MODEL)


def rounds_of(
    surface: Surface, suite: Suite, *, result_of: Callable[[Surface, Suite, Run, int], RunResult] = draw_result
) -> tuple[list[tuple[Run, ...]], list[RunResult]]:
    rounds, results = list[tuple[Run, ...]](), list[RunResult]()
    while runs := plan_round(
        suite, surface.suite_cells, execution_id="e", round_number=len(rounds) + 1, results=results
    ):
        rounds.append(runs)
        results += [result_of(surface, suite, run, 1) for run in runs]
    return rounds, results


@pytest.mark.parametrize(("cells", "runs"), [(2, 1), (24, 1), (48, 2), (96, 4)])
def test_a_round_has_a_run_for_each_24_cells(cells: int, runs: int) -> None:
    assert runs_at_once([make_cell(seed=seed) for seed in range(cells)]) == runs


def test_the_first_round_is_one_trial_of_a_few_cells_with_the_baseline() -> None:
    (first, *_), _ = rounds_of(SMOOTH, SUITE)
    assert {run.trial for run in first} == {1}
    assert len(first) == 8
    assert SMOOTH.suite_cells[0] in [run.cell for run in first]


def test_the_best_cell_is_found_and_confirmed_for_a_fraction_of_the_grid() -> None:
    played = play(SMOOTH, Search.MODEL, seed=1)
    assert played.regret <= 0.02
    assert played.share <= 0.2
    assert played.verdict.finding in (Finding.RECOMMENDED, Finding.WITHIN_TOLERANCE)
    assert played.verdict.recommended is not None
    assert played.verdict.row(played.verdict.recommended).trials >= 2
    assert played.verdict.rivals


def test_cells_that_were_dropped_are_named_with_what_is_expected_of_them() -> None:
    verdict = play(SMOOTH, Search.MODEL, seed=1).verdict
    measured = {row.cell_id for row in verdict.rows if row.outcomes}
    unmeasured = {row.cell_id for row in verdict.rows} - measured
    assert unmeasured == {cell.cell_id for cell in verdict.dropped if not cell.trials}
    compared = {verdict.recommended, *(rival.cell_id for rival in verdict.rivals)}
    assert {cell.cell_id for cell in verdict.dropped} | compared == {row.cell_id for row in verdict.rows}
    text = describe_verdict(verdict)
    without, after = text.dropped
    assert without.startswith("Dropped without a measurement: ")
    assert after.startswith("Dropped after one trial: ")
    assert all(verdict.row(cell_id).label in without for cell_id in unmeasured)
    assert f"The search measured {len(measured)} of 24 cells" in " ".join(text.support)
    assert "is at most" in " ".join(text.support)
    assert parse_verdict(verdict_document(verdict)) == verdict


def test_the_losses_of_dropped_cells_are_no_caution_for_having_one_trial() -> None:
    verdict = play(SMOOTH, Search.MODEL, seed=1).verdict
    dropped = {verdict.row(cell.cell_id).label for cell in verdict.dropped}
    told = [text for text in describe_verdict(verdict).cautions if "unknown with one trial" in text]
    assert not [text for text in told if text.removeprefix("Loss of ").split(" against ")[0] in dropped]


def test_predictions_hold_what_the_surface_says() -> None:
    verdict = play(SMOOTH, Search.MODEL, seed=1).verdict
    best = SMOOTH.value(str(verdict.recommended))
    assert best is not None
    covered = [
        cell.interval.low <= (SMOOTH.value(cell.cell_id) or 0) / best <= cell.interval.high for cell in verdict.dropped
    ]
    assert sum(covered) / len(covered) > 0.8


def test_the_same_results_give_the_same_round_in_any_order() -> None:
    rounds, results = rounds_of(SMOOTH, SUITE)
    done = results[: len(rounds[0]) + len(rounds[1])]
    again = [
        plan_round(SUITE, SMOOTH.suite_cells, execution_id="e", round_number=3, results=given)
        for given in (done, list(reversed(done)))
    ]
    assert again[0] == again[1] == rounds[2]


def test_a_memory_limit_is_not_run_into_again_and_again() -> None:
    cliff = surface_of(lambda batch, workers, precision: None if batch > 8 else smooth(batch, workers, precision))
    played = play(cliff, Search.MODEL, seed=1)
    assert played.regret <= 0.02
    screened, *later = rounds_of(cliff, SUITE)[0]
    fails = {cell_id for cell_id, cell in cliff.by_id.items() if cell.seconds is None}
    assert sum(run.cell.cell_id in fails for run in screened) > 3
    assert sum(run.cell.cell_id in fails for runs in later for run in runs) <= 3
    dropped = [cell for cell in played.verdict.dropped if cell.failure > 0.5]
    assert dropped
    assert "fails with probability" in " ".join(describe_verdict(played.verdict).dropped)


def test_where_everything_fails_the_search_ends() -> None:
    played = play(surface_of(lambda *_: None), Search.MODEL, seed=1)
    assert played.verdict.finding is Finding.NONE_MEASURED
    assert played.runs <= 16


def test_cells_without_capacity_are_tried_twice_and_given_up() -> None:
    def without_capacity(surface: Surface, suite: Suite, run: Run, seed: int) -> RunResult:
        result = draw_result(surface, suite, run, seed)
        return replace(result, outcome=Outcome.CAPACITY_UNAVAILABLE, measured=None, billable_seconds=None)

    rounds, results = rounds_of(SMOOTH, SUITE, result_of=without_capacity)
    assert max(result.run.trial for result in results) == 2
    assert len(rounds) <= last_round(SUITE, SMOOTH.suite_cells)


def pair_of(seconds: tuple[float, float], *, variation: float) -> Surface:
    cells = [replace(SMOOTH.cells[0], seconds=each, variation=variation) for each in seconds]
    settings = ({"loader_workers": 0}, {"loader_workers": 4})
    return replace(
        SMOOTH, cells=tuple(replace(cell, settings=each) for cell, each in zip(cells, settings, strict=True))
    )


def test_a_large_lead_is_settled_by_two_trials_and_a_smaller_one_by_more() -> None:
    trials = {}
    for lead in (4.0, 1.06):
        verdict = play(pair_of((100, 100 * lead), variation=0.01), Search.MODEL, seed=1).verdict
        assert verdict.finding in (Finding.RECOMMENDED, Finding.WITHIN_TOLERANCE)
        assert verdict.recommended == verdict.rows[0].cell_id
        assert verdict.dropped == ()
        trials[lead] = [row.trials for row in verdict.rows]
    assert trials[4.0] == [2, 2]
    assert min(trials[1.06]) > 2


def test_search_ends_undecided_where_a_few_more_trials_would_not_decide() -> None:
    """Equal cells that scatter by 8 %: to show that they are within 2 %, hundreds of trials are needed."""
    verdict = play(pair_of((100, 100), variation=0.08), Search.MODEL, seed=1).verdict
    assert verdict.finding is Finding.UNDECIDED
    assert [row.trials for row in verdict.rows] == [3, 3]


def test_a_limit_of_the_goal_is_kept() -> None:
    # The fastest cells cost too much: half of the time limit excludes the smallest batches.
    priced = replace(SMOOTH, usd_per_hour={"ml.p4d.24xlarge": Decimal(36)})
    suite = replace(priced.suite(Search.MODEL), goal=Goal(kind=GoalKind.CHEAPEST_WITHIN, hours=Decimal(str(30 / 3600))))
    _, results = rounds_of(priced, suite)
    verdict = judge(suite, priced.suite_cells, results)
    seconds = priced.by_id[str(verdict.recommended)].seconds
    assert seconds is not None
    assert seconds <= 30
    assert priced.regret(str(verdict.recommended)) <= 0.02


def test_a_search_that_was_cut_off_says_what_it_left_open() -> None:
    rounds, results = rounds_of(SMOOTH, SUITE)
    verdict = judge(SUITE, SMOOTH.suite_cells, results[: len(rounds[0])])
    text = describe_verdict(verdict)
    assert "The search was not finished" in " ".join(text.cautions)
    assert "none of the" not in " ".join(text.support)


def test_a_cell_whose_loss_differs_by_the_labs_history_gets_no_further_trials() -> None:
    """bf16 is faster and learns worse by 10 %. One trial each shows that only where the spread of losses is known."""

    def learns_worse(surface: Surface, suite: Suite, run: Run, seed: int) -> RunResult:
        result = draw_result(surface, suite, run, seed)
        assert result.measured is not None
        loss = 1.1 if run.cell.settings.precision == Precision.BF16 else 1.0
        points = tuple(replace(point, loss=loss) for point in result.measured.loss.points)
        return replace(result, measured=replace(result.measured, loss=replace(result.measured.loss, points=points)))

    one_batch = [cell for cell in SMOOTH.cells if cell.settings["batch_size_per_device"] == BATCHES[0]]
    surface = replace(SMOOTH, cells=tuple(one_batch))
    cells, history = surface.suite_cells, LossSpread(variance=0.005**2, degrees_of_freedom=20)
    first = plan_round(SUITE, cells, execution_id="e", round_number=1)
    results = [learns_worse(surface, SUITE, run, 1) for run in first]
    refused = judge(SUITE, cells, results, loss_spread=history).refused
    assert refused

    def measured_again(spread: LossSpread | None) -> set[str]:
        found, ran = list(results), set[str]()
        for number in range(2, 8):
            runs = plan_round(SUITE, cells, execution_id="e", round_number=number, results=found, loss_spread=spread)
            ran |= {run.cell.cell_id for run in runs}
            found += [learns_worse(surface, SUITE, run, 1) for run in runs]
        return ran & set(refused)

    assert measured_again(history) == set()
    assert measured_again(None) != set()


def test_a_result_that_is_lost_in_every_round_does_not_keep_the_search_going() -> None:
    rounds, results = rounds_of(SMOOTH, SUITE)
    kept = results[: len(rounds[0]) - 1]
    limit = last_round(SUITE, SMOOTH.suite_cells)
    following = [
        plan_round(SUITE, SMOOTH.suite_cells, execution_id="e", round_number=number, results=kept)
        for number in (limit, limit + 1)
    ]
    assert [bool(runs) for runs in following] == [True, False]
