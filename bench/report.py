"""Reports of rehearsed suites with hundreds of runs: their size, and how long a browser takes to show them.

``TRAINDYNO_BENCH_REPORTS=FOLDER`` keeps the reports. ``TRAINDYNO_BENCH_TRIALS=7`` omits the larger suite.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from bench import rehearsal
from bench.figures import Figure, Section, at_most
from bench.groups import TITLES, command
from bench.kept import Kept
from bench.own_cloud import OwnCloud, own_cloud
from localcloud import cloud as local_cloud

FOLDER_VARIABLE, TRIALS_VARIABLE = "TRAINDYNO_BENCH_REPORTS", "TRAINDYNO_BENCH_TRIALS"
PACK = "albert-scaling"
SUITE = rehearsal.SUITES / PACK / "rehearsal.yaml"
# Trials of its 44 cells, and the largest report in MB: 308 runs and 1,012.
TRIALS, QUICK_TRIALS = {7: 2.0, 23: 5.0}, {1: 2.0}
MAX_USD, MAX_HOURS = 1_000_000, 10_000
BYTES_PER_MB = 1_000_000
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
BROWSER_SECONDS = 120
# This script replaces the page's policy, which forbids scripts. The title says how long loading and layout took.
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*/>')
PROBE = (
    "<script>addEventListener('load', () => setTimeout(() => {const loaded = performance.now();"
    "document.body.style.width = '900px'; const height = document.body.offsetHeight;"
    "document.title = [loaded, performance.now() - loaded, document.querySelectorAll('*').length, height].join(' ')}))"
    "</script>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """``loaded_seconds``: until the browser had read and laid out the page; ``layout_seconds``: of another width."""

    loaded_seconds: float
    layout_seconds: float
    elements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """``seconds``: of the whole rehearsal. ``shown`` is None without a browser."""

    runs: int
    seconds: float
    size_bytes: int
    shown: Shown | None


def measure(*, is_quick: bool, kept: Kept) -> Section:
    limits = most_mb_by_trials(is_quick=is_quick)
    reported = {trials: kept.case(f"{trials} trials", Reported, partial(report_alone, trials)) for trials in limits}
    return Section(
        title=TITLES["report"],
        command=command("report"),
        figures=tuple(figure for trials, each in reported.items() for figure in figures(each, limits[trials])),
        notes=(
            f"The rehearsal of {PACK} with more trials, played by the replay engine. The browser is Chromium without a"
            " window; the page is laid out again at another width, as after a resize.",
        ),
    )


def report_alone(trials: int) -> Reported:
    """Measures the report in a local cloud of its own."""
    with own_cloud() as cloud:
        rehearsal.start(cloud, [PACK])
        reported = report(cloud, trials)
        # Its processes are this one's children: another process would wait for them in vain.
        local_cloud.stop(cloud.home)
    return reported


def most_mb_by_trials(*, is_quick: bool) -> dict[int, float]:
    chosen = os.environ.get(TRIALS_VARIABLE)
    if not chosen:
        return QUICK_TRIALS if is_quick else TRIALS
    known = {str(trials): trials for trials in TRIALS}
    if unknown := [each for each in chosen.split(",") if each not in known]:
        raise ValueError(f"{TRIALS_VARIABLE}: expected {' or '.join(known)}, or both with a comma, got {unknown[0]!r}")
    return {known[each]: TRIALS[known[each]] for each in chosen.split(",")}


def report(cloud: OwnCloud, trials: int) -> Reported:
    began = time.monotonic()
    name = f"report-{trials}"
    found = cloud.run_suite(write_suite(cloud.folder / f"{name}.yaml", trials), name).json()
    seconds = time.monotonic() - began
    page = cloud.folder / "reports" / f"{name}.html"
    if FOLDER_VARIABLE in os.environ:
        kept = Path(os.environ[FOLDER_VARIABLE])
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, kept)
    return Reported(
        runs=len(found["results"]), seconds=seconds, size_bytes=page.stat().st_size, shown=show(page.read_text("utf-8"))
    )


def write_suite(path: Path, trials: int) -> Path:
    """The rehearsal with another number of trials, without the claims about its figures."""
    document: dict[str, Any] = yaml.safe_load(SUITE.read_text(encoding="utf-8"))
    document["name"] = path.stem
    document["workload"]["source"] = str((SUITE.parent / document["workload"]["source"]).resolve())
    document["measurement"]["trials"] = trials
    document["limits"] |= {"max_usd": MAX_USD, "max_hours": MAX_HOURS}
    del document["claims"]
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def show(page: str) -> Shown | None:
    if BROWSER is None:
        return None
    with tempfile.TemporaryDirectory(prefix="traindyno-browser-") as folder:
        file = Path(folder) / "report.html"
        file.write_text(POLICY.sub(PROBE, page), encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile", "--dump-dom"]
        command_line = [BROWSER, *options, "--timeout=60000", file.as_uri()]
        ran = subprocess.run(command_line, capture_output=True, text=True, timeout=BROWSER_SECONDS, check=True)
    title = re.search(r"<title>([\d.]+) ([\d.]+) (\d+) (\d+)</title>", ran.stdout)
    if title is None:
        raise ValueError(f"expected the probe's title in the page, found {ran.stdout[:200]!r}")
    return Shown(loaded_seconds=float(title[1]) / 1000, layout_seconds=float(title[2]) / 1000, elements=int(title[3]))


def figures(found: Reported, most_mb: float) -> tuple[Figure, ...]:
    name, shown = f"{found.runs:,} runs", found.shown
    return (
        Figure(name=f"{name}: from the suite file to the report", value=found.seconds, unit="s"),
        Figure(
            name=f"{name}: size of the report",
            value=found.size_bytes / BYTES_PER_MB,
            unit="MB",
            budget=at_most(most_mb),
        ),
        Figure(name=f"{name}: elements of the page", value=float(shown.elements) if shown else None, unit=""),
        Figure(name=f"{name}: until Chromium shows it", value=shown.loaded_seconds if shown else None, unit="s"),
        Figure(name=f"{name}: another layout", value=shown.layout_seconds if shown else None, unit="s"),
    )
