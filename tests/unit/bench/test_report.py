"""The figures of a report: its suites, and what the browser says of the page."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import report
from bench.own_cloud import OwnCloud
from bench.report import FOLDER_VARIABLE, TRIALS_VARIABLE, Shown, most_mb_by_trials, show, write_suite
from traindyno.api.suite_loading import load_suite
from traindyno.core.suite.cells import expand_cells
from traindyno.report.html import POLICY

PAGE = f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}" /></head><body>a report</body>'
# It replaces Chromium: it needs the probe in the page, and no policy that forbids it.
BROWSER = """#!/bin/sh
for last; do :; done
file=${last#file://}
grep -q 'Content-Security-Policy' "$file" && exit 1
grep -q "addEventListener('load'" "$file" || exit 1
echo "<html><head><title>TITLE</title></head></html>"
"""


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "browser"
    program.write_text(BROWSER.replace("TITLE", "1250.5 310 42000 9000"))
    program.chmod(0o755)
    monkeypatch.setattr(report, "BROWSER", str(program))
    return program


def test_a_page_is_shown_with_the_probe_instead_of_its_policy(browser: Path) -> None:
    assert show(PAGE) == Shown(loaded_seconds=1.2505, layout_seconds=0.31, elements=42_000)


def test_a_page_without_the_probes_title_is_an_error(browser: Path) -> None:
    browser.write_text(BROWSER.replace("TITLE", "Report"))
    with pytest.raises(ValueError, match="expected the probe's title in the page, found '<html>"):
        show(PAGE)


def test_without_a_browser_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "BROWSER", None)
    assert show(PAGE) is None


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [(None, {7: 2.0, 23: 5.0}), ("7", {7: 2.0}), ("23,7", {23: 5.0, 7: 2.0})],
)
def test_the_trials_are_chosen_by_a_variable(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, expected: dict[int, float]
) -> None:
    monkeypatch.delenv(TRIALS_VARIABLE, raising=False)
    if chosen is not None:
        monkeypatch.setenv(TRIALS_VARIABLE, chosen)
    assert most_mb_by_trials(is_quick=False) == expected


@pytest.mark.parametrize("chosen", ["5", "7;23", "many"])
def test_other_trials_are_refused(monkeypatch: pytest.MonkeyPatch, chosen: str) -> None:
    monkeypatch.setenv(TRIALS_VARIABLE, chosen)
    with pytest.raises(ValueError, match=f"expected 7 or 23, or both with a comma, got '{chosen}'"):
        most_mb_by_trials(is_quick=False)


def test_the_suite_is_the_rehearsal_with_so_many_trials(tmp_path: Path) -> None:
    suite = load_suite(write_suite(tmp_path / "report-23.yaml", 23)).suite
    assert (suite.name, suite.measurement.trials, len(expand_cells(suite))) == ("report-23", 23, 44)


def test_the_report_is_the_executions_own_and_kept_in_a_folder_that_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "report-7.html").write_text("seven")
    (tmp_path / "reports" / "report-71.html").write_text("another execution")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "kept" / "reports"))
    monkeypatch.setattr(report, "BROWSER", None)

    def run_suite(_cloud: OwnCloud, suite: Path, name: str) -> Any:
        assert (suite.name, name) == ("report-7.yaml", "report-7")
        return SimpleNamespace(json=lambda: {"results": [{}, {}]})

    monkeypatch.setattr(OwnCloud, "run_suite", run_suite)
    found = report.report(OwnCloud(tmp_path), 7)
    assert (found.runs, found.size_bytes, found.shown) == (2, 5, None)
    assert (tmp_path / "kept" / "reports" / "report-7.html").read_text() == "seven"
