"""Plan, run, watch, results and report as calls, against a lab in memory; and an execution that it
does not have.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.cli.test_finish import ENDED, target_with
from tests.unit.cli.test_plan_command import ENOUGH, NONE_LEFT, PRICES
from tests.unit.cli.test_progress import SUMMARY, state
from tests.unit.planned_lab import empty_lab
from tests.unit.report.test_report import report_of, sample_suite
from tests.unit.run_samples import completed_result, failed_result
from tests.unit.suites import unprepared_document
from traindyno.api import executions, plans
from traindyno.api.executions import SuiteExecution, find_execution, plan, run
from traindyno.api.lab_target import Lab, LabChoiceRefused, LabTarget, StillRunning
from traindyno.api.notebook import (
    FigureMissing,
    NotebookDisplay,
    ReportPage,
    Results,
    display_here,
    results_of,
)
from traindyno.api.plan_inputs import PlanInputs, read_plan_inputs
from traindyno.api.progress import NoProgress, PlainDisplay
from traindyno.api.reports import ExecutionFailed, ReportMissing
from traindyno.api.suite_loading import Suite
from traindyno.aws import clients
from traindyno.aws.account import account_of
from traindyno.aws.executions import ExecutionUnknown
from traindyno.core.errors import SuiteRefused
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.suite.suite import Suite as CheckedSuite
from traindyno.core.verdict.report_data import Report
from traindyno.features import FEATURES
from traindyno.lab.continue_suite import CONTINUES
from traindyno.report.html import render

DOCUMENT = unprepared_document(
    workload={**unprepared_document()["workload"], "model": "s3://bucket/gpt2/"}
)
PREPARED = {
    **DOCUMENT["workload"],
    "dataset": {"path": "s3://bucket/texts/", "text_column": "text"},
}
PREPARED_PRICES = PRICES.replace("1.408", "1.408, ml.m5.2xlarge: 0.461")
DENIED = ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetProducts")


def sample_report() -> Report:
    suite = sample_suite()
    first, second, third = suite.cells
    failed = failed_result(third, 1, Outcome.OUT_OF_MEMORY)
    results = [
        completed_result(cell, trial, suite=suite) for cell in (first, second) for trial in (1, 2)
    ]
    return report_of([*results, failed], suite)


def use(monkeypatch: pytest.MonkeyPatch, target: LabTarget) -> None:
    @contextmanager
    def opened(_: Lab) -> Iterator[LabTarget]:
        yield target

    monkeypatch.setattr(Lab, "opened", opened)


def stored(report: Report, **changes: Any) -> LabTarget:
    """A lab with one execution, which has this report."""
    return target_with(report, SimpleNamespace(describe=lambda _: replace(ENDED, **changes)))


@pytest.mark.parametrize(("quotas", "is_refused"), [(ENOUGH, False), (NONE_LEFT, True)])
def test_a_plan_by_files_needs_no_account(tmp_path: Path, quotas: str, is_refused: bool) -> None:
    (tmp_path / "prices.yaml").write_text(PRICES)
    (tmp_path / "quotas.yaml").write_text(quotas)
    planned = plan(
        Suite.of(**DOCUMENT),
        prices=tmp_path / "prices.yaml",
        quotas=tmp_path / "quotas.yaml",
        memory=False,
    )
    assert (planned.plan.run_count, planned.is_refused, bool(planned.refusals)) == (
        4,
        is_refused,
        is_refused,
    )
    assert planned.document()["run_count"] == 4


def test_a_run_starts_the_suite_under_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_of(empty_lab())
    monkeypatch.setattr(clients, "s3", lambda: None)  # nothing of this suite is on this machine
    use(monkeypatch, target)
    started = [run(Suite.of(**DOCUMENT), name=name, say=lambda _: None) for name in ("mine", None)]
    assert started[0].execution_id == "mine"
    assert started[1].execution_id.startswith("quick-look-20")
    assert find_execution("mine").describe().is_running
    with pytest.raises(ExecutionUnknown):
        find_execution("other")


def test_a_run_continues_an_execution_once_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_of(empty_lab())
    monkeypatch.setattr(clients, "s3", lambda: None)
    use(monkeypatch, target)
    suite = Suite.of(**DOCUMENT)
    run(suite, name="first", say=lambda _: None)
    with pytest.raises(StillRunning, match="first is still running"):
        run(suite, name="rest", continues="first", say=lambda _: None)
    target.executions.stop("first", reason="enough")
    started: dict[str, Any] = {}
    monkeypatch.setattr(type(target.executions), "start", lambda _, *given: started.update([given]))
    assert run(suite, continues="first", name="rest", say=lambda _: None).execution_id == "rest"
    assert started["rest"] == {**suite.document, CONTINUES: "first"}


@pytest.mark.parametrize(
    ("max_usd", "quotas", "reasons"),
    [
        (0.01, ENOUGH, 2),
        (0.01, NONE_LEFT, 3),
        # only the lab knows whether the data is prepared already
        (1.5, ENOUGH, 0),
    ],
)
def test_a_run_starts_nothing_of_a_suite_refused_by_its_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_usd: float, quotas: str, reasons: int
) -> None:
    price_path = tmp_path / "prices.yaml"
    price_path.write_text(PREPARED_PRICES)
    quota_path = tmp_path / "quotas.yaml"
    quota_path.write_text(quotas)
    limits = {**DOCUMENT["limits"], "max_usd": max_usd}
    preparation = {"instance": "ml.m5.2xlarge", "max_seconds": 14_000}
    suite = Suite.of(
        **{**DOCUMENT, "workload": PREPARED, "limits": limits, "preparation": preparation}
    )
    planned = plan(suite, prices=price_path, quotas=quota_path, memory=False)
    assert planned.is_refused

    def read(staged: CheckedSuite, **_: object) -> PlanInputs:
        return read_plan_inputs(staged, price_path=price_path, quota_path=quota_path, now=0.0)

    monkeypatch.setattr(plans, "read_plan_inputs", read)
    monkeypatch.setattr(clients, "s3", lambda: None)
    target = target_of(empty_lab())
    use(monkeypatch, target)
    if not reasons:
        run(suite, name="mine", say=lambda _: None)
        assert find_execution("mine").describe().is_running
        return
    with pytest.raises(SuiteRefused) as refused:
        run(suite, name="mine", say=lambda _: None)
    assert refused.value.reasons == (*planned.refusals, f"can't start: {reasons} reasons above")
    with pytest.raises(ExecutionUnknown):
        find_execution("mine")


def test_without_a_permission_for_prices_the_lab_checks_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(*_: object, **__: object) -> PlanInputs:
        raise DENIED

    monkeypatch.setattr(plans, "read_plan_inputs", read)
    monkeypatch.setattr(clients, "s3", lambda: None)
    use(monkeypatch, target_of(empty_lab()))
    said: list[str] = []
    run(Suite.of(**DOCUMENT), name="mine", say=said.append)
    assert said[0].startswith("prices and quotas can't be read here, the lab checks them: ")
    assert find_execution("mine").describe().is_running


def test_results_have_a_row_for_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    report = sample_report()
    use(monkeypatch, stored(report))
    results = SuiteExecution("execution-1", Lab()).results()
    assert isinstance(results, Results)
    assert [row.summary.run_id for row in results] == [
        result.run.run_id for result in report.results
    ]
    assert all(row.settings for row in results)
    frame = results.frame()
    assert list(frame["outcome"]) == [result.outcome.value for result in report.results]
    assert set(results[0].settings) < set(frame.columns)
    assert len(results[1:]) == len(results) - 1
    table = results._repr_html_()
    assert table.count("<tr>") == len(results) + 1
    assert SuiteExecution("execution-1", Lab()).verdict() == report.verdict


def test_a_frame_without_runs_has_all_columns() -> None:
    report = sample_report()
    columns = list(results_of(report).frame().columns)
    without_runs = results_of(replace(report, results=()))
    assert "cost_usd" in columns
    for results in (without_runs, results_of(report)[:0]):
        assert list(results.frame().columns) == columns
        assert len(results.frame()) == 0


def test_text_of_a_script_is_no_markup_of_a_notebook() -> None:
    report = sample_report()
    hostile = replace(report.results[-1], message="<script>alert(1)</script>\x1b[2J")
    table = results_of(replace(report, results=(hostile,)))._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J" in table
    page = ReportPage(report, '<html>"</html>', ())._repr_html_()
    assert page.startswith('<iframe sandbox srcdoc="&lt;html&gt;&quot;&lt;/html&gt;"')


def test_a_figure_is_a_section_of_the_report(tmp_path: Path) -> None:
    report = ReportPage(sample_report(), render(sample_report(), FEATURES), FEATURES)
    assert "cells" in report.figures
    cells = report.figure("cells").html
    assert 'id="cells"' in cells
    assert 'id="receipt"' not in cells
    with pytest.raises(FigureMissing, match=r'got "cell" as a figure, expected one of cells, '):
        report.figure("cell")
    assert report.save(tmp_path).read_text() == report.html
    assert len(repr(report).splitlines()) == 3


def test_an_execution_without_a_report_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    use(
        monkeypatch,
        stored(sample_report(), status="FAILED", error="SuiteRefused", cause="over the cap"),
    )
    with pytest.raises(
        ExecutionFailed, match="execution-1: failed: SuiteRefused\nover the cap"
    ) as failed:
        SuiteExecution("execution-1", Lab()).report()
    assert failed.value.is_refusal
    target = target_of(empty_lab())
    target.executions.start("mine", {})
    use(monkeypatch, target)
    with pytest.raises(ReportMissing, match="mine \\(running\\) has no report yet"):
        SuiteExecution("mine", Lab()).report()


def test_progress_is_drawn_in_place_and_keeps_the_lines_of_ended_runs() -> None:
    drawn: list[Any] = []
    with NotebookDisplay(drawn.append) as display:
        display.update(state(ended=2))
        display.update(NoProgress("<b>stalled</b>"))
        display.update(state(ended=2, status="SUCCEEDED"))
    page = drawn[-1]._repr_html_()
    assert page.count(SUMMARY.cell_label or "") == 2
    assert "no progress: &lt;b&gt;stalled&lt;/b&gt;" in page
    assert "<tr>" not in page
    assert "<th>cost</th>" in drawn[-3]._repr_html_()
    assert "no progress: <b>stalled</b>" in repr(drawn[-1])


def test_ipythons_kernel_marks_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    def ipython(shell: object) -> None:
        shown = SimpleNamespace(display=lambda *_, **__: SimpleNamespace(update=lambda _: None))
        monkeypatch.setitem(
            sys.modules, "IPython", cast("Any", SimpleNamespace(get_ipython=lambda: shell))
        )
        monkeypatch.setitem(sys.modules, "IPython.display", cast("Any", shown))

    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert isinstance(display_here(print), PlainDisplay)
    ipython(None)
    assert isinstance(display_here(print), PlainDisplay)
    ipython(SimpleNamespace())  # IPython in a terminal
    assert isinstance(display_here(print), PlainDisplay)
    ipython(SimpleNamespace(kernel=1))
    assert isinstance(display_here(print), NotebookDisplay)


def test_an_account_holds_for_its_block_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    clients.forget()
    own = clients.s3()
    session = boto3.DEFAULT_SESSION
    before = dict(os.environ)
    keys = {"AWS_ACCESS_KEY_ID": "inside", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "eu-west-1"}
    with pytest.raises(KeyError), account_of({**before, **keys, "AWS_DEFAULT_REGION": "eu-west-1"}):
        assert clients.s3().meta.region_name == "eu-west-1"
        assert clients.s3() is not own
        raise KeyError
    assert dict(os.environ) == before
    assert boto3.DEFAULT_SESSION is session
    assert clients.s3().meta.region_name == "us-east-1"
    clients.forget()


def test_a_default_lab_comes_from_the_aws_settings() -> None:
    assert Lab() == executions.AWS
    assert (Lab(local=True).name, Lab(name="x").name) == ("traindyno", "x")


@pytest.mark.parametrize("choice", [{"name": "x"}, {"region": "us-east-1"}, {"profile": "work"}])
def test_the_lab_of_the_local_cloud_is_none_of_an_aws_account(choice: dict[str, str]) -> None:
    (name,) = choice
    with pytest.raises(
        LabChoiceRefused, match=f"got local=True with {name}, .* expected local=True alone, or"
    ):
        Lab(local=True, **choice)


def test_a_misspelt_name_gets_the_nearest_ones_and_the_latest_ones() -> None:
    target = target_of(empty_lab())
    for name in ("albert-1", "albert-2", "resnet", "gpt", "llama", "quick-look"):
        target.executions.start(name, {})
    assert target.describe("albert-1").is_running
    with pytest.raises(ExecutionUnknown) as refused:
        target.describe("albert1")
    said = str(refused.value)
    assert said.startswith(
        'lab traindyno has no execution "albert1": did you mean "albert-1" or "albert-2"? '
    )
    latest = [execution.execution_id for execution in target.executions.list_latest(5)]
    assert said.endswith(
        f"Expected one of the executions that `traindyno list --local` shows: {', '.join(latest)}, "
        "…"
    )


def test_a_lab_without_executions_says_so() -> None:
    target = replace(target_of(empty_lab()), is_local=False)
    with pytest.raises(
        ExecutionUnknown,
        match=r'no execution "x", expected one .*`traindyno list` shows: there are none$',
    ):
        target.require_execution("x")
