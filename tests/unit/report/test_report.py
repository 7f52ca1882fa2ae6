import base64
import csv
import io
import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser

import pytest

from tests.unit.run_samples import (
    completed_result,
    failed_result,
    known,
    make_attempt,
    make_run,
    make_suite,
    remeasured,
    result_from,
    step_log_of,
)
from tests.unit.step_log_samples import START
from traindyno.core.costs.quantity_text import number_text
from traindyno.core.jobs.attempt import RunShare
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import BatchFinding
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.s3_keys import saved_model_key
from traindyno.core.search.largest_batch import Probe
from traindyno.core.step_log.line import TARGET_REACHED, evaluation_line
from traindyno.core.suite.choices import GoalKind, Strategy
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Measurement, Suite
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.report_data import Report, parse_report, report_document, shown_results
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.features import FEATURES
from traindyno.report.charts.plot import cut, make_scale, seconds_unit
from traindyno.report.html import render
from traindyno.report.markup import Markup, element
from traindyno.report.provenance_section import draw_receipt
from traindyno.report.runs_section import draw_runs

EVIL = "<script>alert('x')</script>\"&]]>"


def sample_suite() -> Suite:
    return make_suite(
        matrix={"strategy": (Strategy.DDP, Strategy.FSDP, Strategy.ZERO1)},
        training={"instance": "ml.p4d.24xlarge"},
    )


def report_of(results: Sequence[RunResult], suite: Suite | None = None) -> Report:
    suite = suite or sample_suite()
    cells = suite.cells
    return Report(
        execution_id="execution-1",
        created_at=1_795_239_720.0,
        suite=suite,
        cells=cells,
        verdict=judge(suite, cells, results),
        results=shown_results(cells, results),
        facts={"Traindyno": "0.1.0"},
    )


@pytest.fixture(scope="module")
def report() -> Report:
    suite = sample_suite()
    ddp, fsdp, zero1 = suite.cells
    results = [
        completed_result(ddp, trial, step_seconds=1.0 + trial / 100, suite=suite)
        for trial in (1, 2, 3)
    ]
    results += [
        completed_result(fsdp, trial, step_seconds=1.3 + trial / 100, suite=suite)
        for trial in (1, 2, 3)
    ]
    failed = failed_result(zero1, 1, Outcome.OUT_OF_MEMORY, f"out of memory {EVIL}")
    return report_of([*results, replace(failed, log_tail=("step 1", EVIL))], suite)


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return render(report, FEATURES)


class _Structure(HTMLParser):
    """Collects what a browser would load or run, and checks that tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.references: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.references += [
            value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action")
        ]
        assert not [name for name, _ in attrs if name.startswith("on")]
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def structure_of(page: str) -> _Structure:
    structure = _Structure()
    structure.feed(page)
    structure.close()
    assert structure.open == []
    return structure


def test_the_page_is_well_formed_and_fetches_and_runs_nothing(page: str) -> None:
    structure = structure_of(page)
    assert "script" not in structure.tags
    assert "link" not in structure.tags
    assert all(reference.startswith(("#", "data:")) for reference in structure.references)
    assert "http://" not in page.replace("http-equiv", "")
    assert "@import" not in page
    assert "default-src 'none'" in page.replace("&#x27;", "'")


def test_text_from_a_log_is_escaped(page: str) -> None:
    assert "<script>" not in page
    assert EVIL in "".join(structure_of(page).text)


def test_every_cell_and_run_is_listed_with_its_outcome(page: str, report: Report) -> None:
    text = " ".join(structure_of(page).text)
    for result in report.results:
        assert result.run.run_id in text
    assert "out of memory" in text
    assert "0 of 1" in text


def test_charts_have_titles_for_blind_readers(page: str) -> None:
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) >= 6
    for picture in pictures:
        assert 'role="img"' in picture
        assert re.match(r"<svg[^>]*><title>[^<]+</title><desc>[^<]+</desc>", picture)


def test_no_position_in_a_chart_is_not_a_number(page: str) -> None:
    assert not re.search(r'="[^"]*\b(nan|inf)\b', page)


def downloads(page: str) -> dict[str, str]:
    matches = re.findall(r'download="([^"]+)" href="data:[^;]+;charset=utf-8;base64,([^"]+)"', page)
    return {name: base64.b64decode(content).decode() for name, content in matches}


def test_the_page_carries_its_whole_data(page: str, report: Report) -> None:
    assert parse_report(json.loads(downloads(page)["execution-1.json"])) == report


def test_the_runs_are_there_as_a_table_too(page: str, report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(downloads(page)["execution-1-runs.csv"])))
    assert [row["run_id"] for row in rows] == [result.run.run_id for result in report.results]
    assert float(rows[0]["samples_per_second"]) == pytest.approx(8 / 1.01)


def test_every_plot_has_its_data_as_csv(page: str, report: Report) -> None:
    tables = {
        name: list(csv.DictReader(io.StringIO(text)))
        for name, text in downloads(page).items()
        if "csv" in name
    }
    assert {
        "verdict.csv",
        "samples-per-second.csv",
        "billed-seconds.csv",
        "training-loss.csv",
        "phases.csv",
    } <= set(tables)
    row = report.verdict.ranked_rows[0]
    assert row.usd is not None
    assert tables["verdict.csv"][0]["cell"] == row.label
    assert float(tables["verdict.csv"][0]["usd"]) == pytest.approx(row.usd.mean, rel=1e-5)
    figures = page.split('<section id="provenance"', maxsplit=1)[0].count("<figure>")
    assert figures == 7
    # each figure names its file, apart from the views of one plot, which share one
    assert page.count('class="csv"') == len(tables) - 1


def test_the_recommendation_is_three_sentences_with_the_statistics_below(
    page: str, report: Report
) -> None:
    section = page.split('<section id="verdict"')[1].split("</section>", maxsplit=1)[0]
    spoken, picture, below = section.partition("<figure>")
    text = re.sub(r"<[^>]+>", "\n", spoken)
    sentences = [line for line in text.splitlines() if line.endswith(".")]
    assert sentences == [*describe_verdict(report.verdict).lead]
    # 12,499 steps of 1.02 s and 110 s beside them are billed, at one cent a second
    assert (
        "takes about 3.59 h (nine of ten runs: 3.45 to 3.74 h) and costs about $128.61 (nine of"
        in sentences[1]
    )
    # 6 runs of 110 s and 60 steps each, and a failed one of 50 s
    assert sentences[2].startswith("6 of 7 runs measured 2 of 3 cells; the 7 runs cost $11.31;")
    assert (
        "Trials of 61.2 s can't show what begins later in a work of 3.59 h or is rare"
        in sentences[2]
    )
    assert "confirm: {minutes: 20} runs the two leaders for so long" in sentences[2]
    assert picture and "<table" not in spoken
    for term in ("interval", "confidence", "p value"):
        assert term not in text
    assert "interval" in below


def test_curves_are_drawn_over_steps_time_and_cost_and_chosen_without_a_script(page: str) -> None:
    loss = page.split('<section id="loss"')[1].split("</section>", maxsplit=1)[0]
    for name in ("steps", "time", "cost"):
        assert f"Training loss over {name}" in loss
    assert loss.count('type="radio"') == 3
    assert loss.count("checked") == 1
    rows = list(csv.DictReader(io.StringIO(downloads(page)["training-loss.csv"])))
    assert float(rows[0]["seconds"]) > 80
    assert float(rows[-1]["usd"]) > float(rows[0]["usd"])


def long_run(suite: Suite, source: random.Random) -> RunResult:
    """A run whose losses share no digits."""
    return completed_result(
        suite.cells[0],
        1,
        step_seconds=source.uniform(0.8, 1.6),
        suite=suite,
        loss=lambda step: 4 * 0.99**step + source.gauss(0, 0.03),
    )


@pytest.mark.parametrize(
    ("cell_count", "trials", "most_bytes"), [(100, 3, 2_000_000), (200, 5, 5_000_000)]
)
def test_a_report_of_300_runs_stays_below_2_mb_and_one_with_1000_below_5_mb(
    cell_count: int, trials: int, most_bytes: int
) -> None:
    """Each run is one of a few that differ; what compresses well in them is a small part of the
    page.
    """
    suite = make_suite(
        matrix={
            "instance_count": (1, 2, 4, 8, 16),
            "strategy": (Strategy.DDP, Strategy.FSDP),
            "loader_workers": tuple(range(cell_count // 10)),
        },
        training={"instance": "ml.p4d.24xlarge"},
    )
    source = random.Random(1)
    samples = [long_run(suite, source) for _ in range(30)]
    cells = suite.cells
    runs = [make_run(cell, trial) for cell in cells for trial in range(1, trials + 1)]
    results = [replace(source.choice(samples), run=run) for run in runs]
    assert len(results) == cell_count * trials
    page = render(report_of(results, suite), FEATURES)
    assert len(page.encode()) < most_bytes


def test_simulated_results_are_labelled_wherever_they_are_shown(report: Report) -> None:
    page = render(
        report_of([replace(result, is_simulated=True) for result in report.results]), FEATURES
    )
    assert "Simulated results" in page
    assert page.count(">simulated<") == len(report.results)
    assert 'id="loss"' not in page  # its losses are invented
    assert "Simulated results" not in render(report, FEATURES)


def test_a_suite_with_failures_only_still_has_a_report() -> None:
    suite = sample_suite()
    cells = suite.cells
    page = render(report_of([failed_result(cells[0], 1, Outcome.USER_CODE_ERROR)], suite), FEATURES)
    structure_of(page)
    assert "No cell was measured" in page
    structure_of(render(report_of([], suite), FEATURES))


def test_a_crashed_run_shows_no_rate() -> None:
    suite = sample_suite()
    whole = completed_result(suite.cells[0], 1, suite=suite)
    tables = [
        str(draw_runs(report_of([replace(whole, outcome=outcome)], suite)))
        for outcome in (Outcome.COMPLETED, Outcome.USER_CODE_ERROR)
    ]
    assert [number_text(known(whole.samples_per_second)) in table for table in tables] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("planned", "shown", "expected"),
    [
        (3, 3, "-t1, seed 3<"),
        (3, None, "-t1, seed 3 not shown by the script<"),
        (None, None, "-t1<"),
    ],
)
def test_a_run_is_listed_with_its_seed(
    planned: int | None, shown: int | None, expected: str
) -> None:
    suite = sample_suite()
    whole = completed_result(suite.cells[0], 1, suite=suite)
    known = replace(whole, run=replace(whole.run, seed=planned), seed=shown)
    assert expected in str(draw_runs(report_of([known], suite)))


def test_a_saved_model_is_named_in_the_sdks_call_for_a_batch() -> None:
    suite = replace(sample_suite(), measurement=Measurement(save_model=True))
    result = completed_result(suite.cells[0], 1, suite=suite)
    key = saved_model_key(result.run.execution_id, result.run.run_id, result.attempts[-1].job_name)
    saved, unsaved = (
        str(draw_runs(report_of([result], drawn))) for drawn in (suite, sample_suite())
    )
    assert f"s3://BUCKET/{key}" in saved
    assert (".transformer(1, " in saved, ".transformer(" in unsaved) == (True, False)


def test_a_run_ended_at_its_target_can_be_drawn_and_says_so() -> None:
    suite = make_suite(
        goal=Goal(kind=GoalKind.FASTEST_TO, accuracy=0.9),
        matrix={"strategy": (Strategy.DDP, Strategy.FSDP, Strategy.ZERO1)},
        training={"instance": "ml.p4d.24xlarge"},
    )
    evaluation = evaluation_line(START + 1, 1, {"accuracy": 0.95})
    result = result_from(
        step_log_of([1.0], after=[evaluation], end_reason=TARGET_REACHED),
        run=make_run(suite.cells[0]),
        suite=suite,
    )
    page = render(report_of([result], suite), FEATURES)
    structure_of(page)
    assert "completed at the target" in page
    assert "too few steps" not in page


def test_text_is_escaped_unless_it_is_markup() -> None:
    assert element("p", "<b>", Markup("<i>x</i>")) == "<p>&lt;b&gt;<i>x</i></p>"
    assert element("a", "x", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;">x</a>'
    assert element("line", class_="grid", stroke_width=2) == '<line class="grid" stroke-width="2"/>'


def test_long_labels_keep_their_differing_values() -> None:
    """A rehearsal of 44 cells had names that began alike and were cut before their values."""
    labels = [
        (
            f"{count} × ml.p4d.24xlarge · smddp · dataloader_num_workers {workers} · max_steps "
            "1250 · batch_size 32"
        )
        for count in (2, 16)
        for workers in (0, 4, 12)
    ]
    shown = [cut(label, 46) for label in labels]
    assert len(set(shown)) == len(labels)
    assert all(len(label) <= 46 for label in shown)
    assert all(" 1250 " in label and label.endswith(" 32") for label in shown)
    assert cut("ddp · bf16", 46) == "ddp · bf16"
    assert cut("a" * 60, 20) == "a" * 19 + "…"
    assert cut("1 2 3 4 5 6 7 8 9", 8) == "1 2 3 4…"


def test_ticks_are_round_and_carry_a_fitting_unit() -> None:
    scale = make_scale(0.0, 900.0, begin=0, end=100, unit=seconds_unit(900.0))
    # 15 minutes in about five parts: every 2.5 would be six, every 5 three
    assert [scale.label(tick) for tick in scale.ticks()] == ["0 min", "5 min", "10 min", "15 min"]
    assert seconds_unit(0.05).after == " ms"
    assert make_scale(3.0, 3.0, begin=0, end=100)(3.0) == 0


def test_the_cells_show_recurring_phases_the_bill_and_the_time_of_one_run() -> None:
    suite = sample_suite()
    ddp, fsdp, _ = suite.cells
    results = [
        completed_result(ddp, trial, step_seconds=1.0 + trial / 100, suite=suite)
        for trial in (1, 2)
    ]
    spot = [completed_result(fsdp, trial, step_seconds=1.3, suite=suite) for trial in (1, 2)]
    for result in spot:
        (attempt,) = result.attempts
        cheaper = replace(
            attempt, billable_seconds=(attempt.billable_seconds or 0) * 0.3, training_seconds=188.0
        )
        results.append(replace(remeasured(result, recurring_share=0.25), attempts=(cheaper,)))
    plain, shown = (report_of(some, suite) for some in (results[:2], results))
    whole = cells_section(shown)
    for heading in ("Before training", "Time of one run, 90 %", "Cost of one run, 90 %"):
        assert heading in headings_of(plain)
    for heading, value in (("Billed share", "30.0 %"), ("Recurring", "25.0 %")):
        assert heading not in headings_of(plain)
        assert heading in headings_of(shown)
        assert value in whole
    # equal trials: both ends of the interval are the projected time, 12,499 x 1.3 s + 170 s
    assert "4.56 to 4.57 h" in whole


def test_the_cells_show_iterations_price_and_billed_time() -> None:
    """The table of the Trainium post has them, and the Training Compiler post's chart of billable
    seconds.
    """
    suite = sample_suite()
    cell = suite.cells[0]
    report = report_of(
        [completed_result(cell, trial, step_seconds=0.5, suite=suite) for trial in (1, 2)], suite
    )
    (row,) = [row for row in report.verdict.rows if row.trials]
    # 2 steps a second; 100,000 examples in steps of 8 are 12,500: the first of 10 s, the others of
    # 0.5 s, 100 s beside
    assert known(row.steps_per_second).mean == pytest.approx(2.0)
    # a fault of the service in 6,000 hours is expected, which repeats half of the run
    assert known(row.billable_seconds).mean == pytest.approx(100 + 10 + 12_499 * 0.5, rel=2e-4)
    assert [row.usd_per_hour, replace(row, instance_count=2).usd_per_hour] == [
        Decimal(36),
        Decimal(72),
    ]
    assert {"Steps/s", "Billed time", "Price per hour"} <= set(headings_of(report))
    whole = cells_section(report)
    assert "$36.00" in whole
    assert "Billed time of each instance" in whole


def cells_markup(report: Report) -> str:
    return render(report, FEATURES).split('<section id="cells">')[1].split("</section>")[0]


def cells_section(report: Report) -> str:
    """Its text."""
    return re.sub(r"<[^>]+>", " ", cells_markup(report))


def headings_of(report: Report) -> list[str]:
    """The headings of the table of cells."""
    headings = re.findall(r"<th\b[^>]*>(.*?)</th>", cells_markup(report), flags=re.DOTALL)
    return [re.sub(r"<[^>]+>", "", heading).strip() for heading in headings]


def test_a_long_run_confirming_a_leader_has_its_name(report: Report) -> None:
    results = [
        replace(result, run=replace(result.run, confirming_steps=900)) for result in report.results
    ]
    page = render(replace(report, results=tuple(results)), FEATURES)
    assert not re.search(r"trial \d", str(draw_runs(replace(report, results=tuple(results)))))
    assert "long run" in page


def test_the_cells_name_the_unsteady_trials_and_why() -> None:
    suite = sample_suite()
    ddp, *_ = suite.cells
    result = completed_result(ddp, 1, suite=suite)
    unsteady = remeasured(result, is_reached=False, reason="step times drift: by +3.0%")
    page = render(report_of([unsteady, completed_result(ddp, 2, suite=suite)], suite), FEATURES)
    assert "Trials that were not steady" in page
    assert "1 of 2 trials. step times drift: by +3.0%." in page


def searched(
    result: RunResult, *probes: Probe, batch: int, outcome: Outcome = Outcome.COMPLETED
) -> RunResult:
    attempt = replace(result.attempts[-1], batch=BatchFinding(batch=batch, probes=probes))
    return replace(result, outcome=outcome, attempts=(attempt,))


def batches_of(report: Report, *results: RunResult) -> tuple[str, list[str]]:
    """The section of the report with these results, as it is after it was stored, and the text of
    its rows.
    """
    page = render(parse_report(report_document(replace(report, results=results))), FEATURES)
    section = page.partition('id="batches"')[2].partition("</section>")[0]
    return section, [
        re.sub(r"<[^>]*>", "|", row) for row in section.partition("<table")[2].split("<tr>")[2:]
    ]


def test_probed_batches_have_rows(report: Report) -> None:
    (first, *others) = report.results
    probes = (
        Probe(batch=4, fits=True, peak_bytes=4 * 2**30, samples_per_second=10.0),
        Probe(batch=8, fits=False),
        Probe(batch=6, fits=True, peak_bytes=6 * 2**30, samples_per_second=12.5),
    )
    section, rows = batches_of(report, searched(first, *probes, batch=6), *others)
    expected = [("4", "yes", "10.0", "4.0"), ("6 (measured)", "yes", "12.5", "6.0"), ("8", "no")]
    for row, texts in zip(rows, expected, strict=True):
        assert all(text in row for text in texts), row
    assert "<p>" not in section
    assert 'id="batches"' not in render(report, FEATURES)


@pytest.mark.parametrize(
    ("probes", "outcome", "note"),
    [
        (((2, False), (1, False)), Outcome.OUT_OF_MEMORY, "no batch fits, not even 1"),
        (((1, True),), Outcome.COMPLETED, "1 or more; no probe tells whether a larger batch fits"),
    ],
)
def test_the_section_of_batches_says_the_end_of_the_search(
    report: Report, probes: tuple[tuple[int, bool], ...], outcome: Outcome, note: str
) -> None:
    (first, *others) = report.results
    made = (Probe(batch=batch, fits=fits) for batch, fits in probes)
    section, _ = batches_of(report, searched(first, *made, batch=1, outcome=outcome), *others)
    assert f"{first.run.cell.label}: {note}." in section
    assert ("(measured)" in section) is (outcome is Outcome.COMPLETED)


def test_a_cell_with_two_searches_shows_the_one_of_its_measured_batch(
    report: Report,
) -> None:
    """The first trial was lost after its probes, and the second one searched again.

    Another cell found the same.
    """
    second, *_ = report.results
    other = next(result for result in report.results if result.run.cell != second.run.cell)
    lost = replace(second, run=replace(second.run, trial=9))
    of = {
        batch: Probe(batch=batch, fits=True, samples_per_second=batch) for batch in (8, 16, 24, 32)
    }
    section, rows = batches_of(
        report,
        searched(second, of[16], of[32], batch=32),
        searched(lost, of[8], of[24], batch=24, outcome=Outcome.INTERNAL_ERROR),
        searched(other, of[16], of[32], batch=32),
    )
    assert len(rows) == 4
    for row, batch in zip(rows, ("16", "32 (measured)") * 2, strict=True):
        assert f"|{batch}|" in row
    assert section.count("32 or more") == 2


def test_runs_sharing_a_job_are_lines_with_parts_of_its_bill() -> None:
    suite = sample_suite()
    results = []
    for place, cell in zip((3, 1, 2), suite.cells, strict=True):
        share = RunShare(
            own_seconds=100.0 * place, start_seconds=65.0, end_seconds=5.0, place=place, runs=3
        )
        attempt = make_attempt(
            job_name="shared-a1", billable_seconds=100.0 * place + 23.333, share=share
        )
        results.append(replace(completed_result(cell, 1, suite=suite), attempts=(attempt,)))
    assert "run 3 of 3 in job shared-a1" in draw_runs(report_of(results, suite))
    lines = str(draw_receipt(report_of(results, suite)))
    assert "1 jobs, 3 parts" not in lines
    assert "1 job, 3 parts" in lines
    assert all(f"shared-a1, run {place} of 3" in lines for place in (1, 2, 3))
    # 600 s of runs and 69.999 s of the rest, at $36 an hour: 6.69999
    assert "$6.70" in lines
