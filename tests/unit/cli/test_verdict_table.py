from collections.abc import Mapping
from io import StringIO

from tests.unit.report.test_report import cells_section, headings_of, report_of, sample_suite
from tests.unit.run_samples import completed_result, failed_result, make_suite, remeasured
from tests.unit.step_log_samples import START
from tests.unit.verdict_samples import make_row
from traindyno.cli.display.verdict_table import interval_bars, print_verdict
from traindyno.cli.output import Terminal
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import evaluation_line
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cell_figures import CELL_FIGURES, InTerminal
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.trained_weights import CellWeights
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.features import FEATURES
from traindyno.figures.estimates import Estimate, Interval


def printed(report: Report, width: int = 220) -> str:
    sink = StringIO()
    print_verdict(Terminal(file=sink, width=width), report, FEATURES)
    return sink.getvalue()


def trials(*, recurring_share: float = 0.0) -> list[RunResult]:
    cell, *_ = sample_suite().cells
    results = []
    for trial in (1, 2):
        result = completed_result(cell, trial, suite=sample_suite())
        results.append(remeasured(result, recurring_share=recurring_share))
    return results


def test_beside_an_adapter_the_other_cell_trains_all_weights() -> None:
    weights = {
        "adapter": CellWeights(parameters=200, trained=50, learning_rate=0.01),
        "full": CellWeights(parameters=150, learning_rate=0.001),
        "failed": CellWeights(),
    }
    rows = [make_row(name, parts=(part,)) for name, part in weights.items()]
    (trained,) = (figure for figure in CELL_FIGURES if figure.heading == "Trained")
    assert trained.is_known_of(rows)
    assert not trained.is_known_of(rows[1:])
    assert [trained.text(trained.value(row)) for row in rows] == [
        "50 of 200 (25.0 %) at learning rate 0.01",
        "all weights at learning rate 0.001",
        "unknown",
    ]


def test_the_table_shows_the_time_before_training_and_the_interval_of_one_run() -> None:
    text = printed(report_of(trials()))
    # starting 60 s and downloading 20 s; 12,499 s of steps and 170 s beside them
    for expected in ("before training", "80.0 s", "time of one run, 90 %", "3.52 to 3.52 h"):
        assert expected in text
    assert "recurring" not in text


def test_terminal_and_report_show_the_same_figures_under_the_same_headings() -> None:
    first, second, _ = sample_suite().cells
    report = report_of(
        [*trials(recurring_share=0.2), failed_result(second, 1, Outcome.OUT_OF_MEMORY)]
    )
    terminal = printed(report, width=400)
    section = cells_section(report)
    assert "1 out of memory" in terminal
    assert "1 out of memory" in section
    figures = [shown for shown in CELL_FIGURES if shown.in_terminal is not InTerminal.NEVER]
    known = [cell_figure for cell_figure in figures if cell_figure.is_known_of(report.verdict.rows)]
    assert len(known) > 6
    for figure in known:
        assert figure.heading in headings_of(report)
        assert figure.heading.lower() in terminal
        value = figure.value(report.verdict.row(first.cell_id))
        if not isinstance(value, Mapping):
            text = (
                figure.text(value.mean) if isinstance(value, Estimate) else figure.plain_text(value)
            )
            assert text in terminal
            assert text in section
    assert any("unknown" in line for line in terminal.splitlines() if second.label in line)
    assert {cell_figure.heading for cell_figure in figures if cell_figure not in known}.isdisjoint(
        headings_of(report)
    )


def test_verdict_begins_with_three_sentences_and_shows_the_best_cells_only() -> None:
    suite = make_suite(
        matrix={"loader_workers": tuple(range(15))},
        training={"instance": "ml.p4d.24xlarge"},
        examples=100_000,
    )
    results = [
        completed_result(
            cell,
            trial,
            step_seconds=1 + cell.settings.loader_workers / 10 + trial / 500,
            suite=suite,
        )
        for cell in suite.cells
        for trial in (1, 2, 3)
    ]
    report = report_of(results, suite)
    lines = (text := printed(report, width=400)).splitlines()
    assert tuple(lines[:3]) == describe_verdict(report.verdict).lead
    assert "the best 12 of 15 cells" in text
    assert "11 loader workers" in text
    assert "12 loader workers" not in text
    assert "usd, 95 %" in text
    assert len(lines) < 45


def test_an_accuracy_has_its_interval_and_a_target_its_columns() -> None:
    goal = Goal(kind=GoalKind.FASTEST_TO, accuracy=0.9)
    suite = make_suite(
        goal=goal, matrix={"loader_workers": (0, 4)}, training={"instance": "ml.p4d.24xlarge"}
    )
    results = [
        completed_result(
            cell,
            trial,
            suite=suite,
            after=[evaluation_line(START + 70, 60, {"accuracy": 0.9 + trial / 100})],
        )
        for cell in suite.cells
        for trial in (1, 2)
    ]
    text = printed(report_of(results, suite), width=260)
    # 0.91 and 0.92: a mean of 0.915, 12.706 x 0.00707 / sqrt(2) = 0.0635 on either side, cut off at
    # 1 by none
    assert "91.5 % ± 6.4" in text
    for expected in (
        "reached",
        "2 of 2",
        "time to target",
        "cost to target",
        "seconds to target, 95 %",
    ):
        assert expected in text


def test_intervals_share_one_scale() -> None:
    def estimate_of(mean: float, low: float, high: float) -> Estimate:
        interval = Interval(low=low, high=high, confidence=0.95)
        return Estimate(mean=mean, count=3, variation=0.01, interval=interval)

    first, second, unknown = interval_bars(
        [estimate_of(10, 8, 12), estimate_of(20, 19, 23), None], tolerance=0.1
    )
    # from 0 to 23 in 24 letters, so that each is one: the zone ends at 11, within the first
    # interval
    assert first == "        ├─●─┤           "
    assert second == "           :       ├●──┤"
    assert unknown == ""
