"""The packs are rehearsed on this machine: granted quotas, traces, prices, simulated jobs, a verdict, claims."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.rehearsal import findings, write_traces
from bench.rehearsal_findings import differences
from bench.rehearsal_traces import PACKS
from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab

pytestmark = [pytest.mark.local, pytest.mark.nightly]

PACK = "bert-trainium"
GRANTED = ("--grant-quotas", "16")
# The local snapshot has no price for it. A price decides nothing here but that the suite may start.
ASSUMED_PRICES = {"ml.g6e.12xlarge": "13"}
LARGE_PRICES = REPO_ROOT / "suites" / "large_rehearsal_prices.json"


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLab]:
    folder = tmp_path_factory.mktemp("rehearsal")
    yield from lab_of(folder, *GRANTED, *write_traces(folder, [PACK]))


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLab]:
    """Without traces: every step of a job takes the same time."""
    folder = tmp_path_factory.mktemp("simulated")
    prices = folder / "prices.json"
    prices.write_text(json.dumps({**json.loads(LARGE_PRICES.read_text()), **ASSUMED_PRICES}))
    yield from lab_of(folder, "--grant-quotas", "64", "--prices", str(prices))


def lab_of(folder: Path, *options: str) -> Iterator[LocalLab]:
    lab = LocalLab(folder)
    try:
        up = lab.traindyno("local", "up", *options)
        assert up.status == 0, up.errors
        yield lab
    finally:
        lab.traindyno("local", "down", "--erase", "--yes")


def test_rehearsal_ends_in_a_simulated_verdict_with_the_findings_of_the_post(rehearsal: LocalLab) -> None:
    suite = REPO_ROOT / "suites" / PACK / "rehearsal.yaml"
    ran = rehearsal.traindyno("run", str(suite), "--local", "--format", "json")
    assert ran.status == 0, ran.errors
    report = ran.json()
    verdict = report["verdict"]
    assert verdict["is_simulated"] is True
    best = next(row for row in verdict["rows"] if row["cell_id"] == verdict["recommended"])
    assert best["instance"] == "ml.trn1.32xlarge"
    assert [row["outcomes"] for row in verdict["rows"]] == [{"completed": 3}] * 2
    assert [*differences(PACK, findings(report))] == []


@pytest.mark.parametrize("kind", ["original", "modern"])
@pytest.mark.parametrize("pack", PACKS)
def test_every_run_of_a_packs_suites_is_played_to_a_simulated_verdict(
    pack: str, kind: str, simulated: LocalLab
) -> None:
    ran = simulated.traindyno("run", str(REPO_ROOT / "suites" / pack / f"{kind}.yaml"), "--local", "--format", "json")
    assert ran.status == 0, ran.errors
    report = ran.json()
    assert report["verdict"]["is_simulated"] is True
    assert report["verdict"]["recommended"] in {cell["cell_id"] for cell in report["cells"]}
    measured = {result["run"]["cell"]["cell_id"] for result in report["results"]}
    assert measured == {cell["cell_id"] for cell in report["cells"]}
    outcomes = {result["outcome"] for result in report["results"]}
    assert outcomes <= ({"completed"} if kind == "original" else {"completed", "outpaced"})
    jobs = {attempt["job_name"] for result in report["results"] for attempt in result["attempts"]}
    assert kind == "modern" or len(jobs) == len(report["results"])  # an original's billed seconds are those of a job
