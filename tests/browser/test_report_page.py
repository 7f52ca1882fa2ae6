"""The report as a browser shows it; needs a Chromium on the PATH."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.run_samples import completed_result, failed_result, make_suite
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.suite.choices import Strategy
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.report_data import Report, shown_results
from traindyno.features import FEATURES
from traindyno.report.html import render

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH"),
]
# A probe in place of the page's policy: it writes into the title what only a browser knows.
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*/>')
PROBE = (
    "<script>addEventListener('load', () => {const page = document.documentElement;document.title "
    "= [page.scrollWidth, innerWidth, document.images.length,[...document.querySelectorAll('svg "
    "text')].filter(t => !t.closest('.view') || t.closest('.view').offsetHeight).filter(t => "
    "!t.getBBox().width).length].join(' ')})</script>"
)


@pytest.fixture(scope="module")
def page() -> str:
    suite = make_suite(
        matrix={
            "strategy": (Strategy.DDP, Strategy.FSDP),
            "instance_count": (1, 2),
            "loader_workers": (0, 4),
        },
        training={"instance": "ml.p4d.24xlarge"},
    )
    cells = suite.cells
    results = [
        completed_result(cell, trial, step_seconds=1 + index / 10 + trial / 100, suite=suite)
        for index, cell in enumerate(cells[:-1])
        for trial in (1, 2, 3)
    ]
    failed = failed_result(cells[-1], 1, Outcome.OUT_OF_MEMORY, "out of memory " + "x" * 300)
    results.append(replace(failed, log_tail=("a" * 500, "b")))
    verdict = judge(suite, cells, results)
    return render(
        Report(
            execution_id="e",
            created_at=1_795_239_720.0,
            suite=suite,
            cells=cells,
            verdict=verdict,
            results=shown_results(cells, results),
        ),
        FEATURES,
    )


def browse(
    tmp_path: Path, page: str, *options: str, width: int = 1280
) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    command += [f"--window-size={width},900", "--enable-logging=stderr", *options, file.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_own_policy_allows_all_needs_of_the_page(tmp_path: Path, page: str) -> None:
    shown = browse(tmp_path, page, "--dump-dom")
    assert "Content Security Policy" not in shown.stderr
    assert "Use " in shown.stdout


@pytest.mark.parametrize("width", [500, 1280])
def test_nothing_is_wider_than_the_window(tmp_path: Path, page: str, width: int) -> None:
    probed = browse(tmp_path, POLICY.sub(PROBE, page), "--dump-dom", width=width)
    title = re.search(r"<title>([^<]*)</title>", probed.stdout)
    assert title is not None
    scroll_width, inner_width, _, empty_labels = map(int, title[1].split())
    assert scroll_width <= inner_width
    assert empty_labels == 0


def test_a_radio_button_chooses_the_view_without_a_script(tmp_path: Path, page: str) -> None:
    """The probe counts the pictures that are shown, before and after the second button is
    chosen.
    """
    probe = (
        "<script>addEventListener('load', () => {const shown = () => "
        "[...document.querySelector('#learning-1').closest('.views').querySelectorAll('.view')]"
        ".map((view, index) => "
        "view.getBoundingClientRect().height > 0 ? index : -1).filter(index => index >= 0);const "
        "before = shown().join(','); document.querySelector('#learning-1').checked = "
        "true;document.title = before + ' ' + shown().join(',')})</script>"
    )
    probed = browse(tmp_path, POLICY.sub(probe, page), "--dump-dom")
    title = re.search(r"<title>([^<]*)</title>", probed.stdout)
    assert title is not None
    before, after = title[1].split()
    assert (before, after) == ("0", "1")  # the curves of the loss over steps, then over time


def test_page_prints(tmp_path: Path, page: str) -> None:
    browse(tmp_path, page, f"--print-to-pdf={tmp_path / 'report.pdf'}", "--no-pdf-header-footer")
    pages = re.findall(rb"/Type\s*/Page\b", (tmp_path / "report.pdf").read_bytes())
    assert 2 <= len(pages) <= 15
