"""The packs are rehearsed on this machine: granted quotas, traces, prices, simulated jobs, a
verdict, claims.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.rehearsal import findings, write_traces
from bench.rehearsal_findings import differences
from bench.rehearsal_traces import PACKS
from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab, script_suite, started_lab

pytestmark = [pytest.mark.local, pytest.mark.nightly]

PACK = "bert-trainium"
GRANTED = ("--grant-quotas", "16")
# The local snapshot has no price for it. A price decides nothing here but that the suite may start.
ASSUMED_PRICES = {"ml.g6e.12xlarge": "13"}
LARGE_PRICES = REPO_ROOT / "suites" / "large_rehearsal_prices.json"
SECONDS = {"best": 0.1, "near": 0.102, "far": 0.4}
STEPS = 20
RACE = f"""
import sys, time
from traindyno.callbacks import step_log
seconds = {SECONDS}[sys.argv[sys.argv.index("--does") + 1]]
for number in range({STEPS}):
    with step_log.step(samples=10) as step:
        time.sleep(seconds)
        step.loss = 1 / (number + 1)
"""


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLab]:
    folder = tmp_path_factory.mktemp("rehearsal")
    with started_lab(folder, *GRANTED, *write_traces(folder, [PACK])) as lab:
        yield lab


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLab]:
    """Without traces: every step of a job takes the same time."""
    folder = tmp_path_factory.mktemp("simulated")
    prices = folder / "prices.json"
    prices.write_text(json.dumps({**json.loads(LARGE_PRICES.read_text()), **ASSUMED_PRICES}))
    with started_lab(folder, "--grant-quotas", "64", "--prices", str(prices)) as lab:
        yield lab


def test_rehearsal_ends_in_a_simulated_verdict_with_the_findings_of_the_post(
    rehearsal: LocalLab,
) -> None:
    suite = REPO_ROOT / "suites" / PACK / "rehearsal.yaml"
    ran = rehearsal.succeed("run", str(suite), "--local", "--format", "json")
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
    ran = simulated.succeed(
        "run", str(REPO_ROOT / "suites" / pack / f"{kind}.yaml"), "--local", "--format", "json"
    )
    report = ran.json()
    assert report["verdict"]["is_simulated"] is True
    # The posts' scripts vary the batch with the hardware, so their cells do unlike work.
    is_unlike = kind == "original" and pack != "gptj-parallel"
    assert (report["verdict"]["finding"] == "unlike_work") is is_unlike
    assert (report["verdict"]["recommended"] is None) is is_unlike
    measured = {result["run"]["cell"]["cell_id"] for result in report["results"]}
    assert measured == {cell["cell_id"] for cell in report["cells"]}
    outcomes = {result["outcome"] for result in report["results"]}
    assert outcomes <= ({"completed"} if kind == "original" else {"completed", "outpaced"})
    jobs = {attempt["job_name"] for result in report["results"] for attempt in result["attempts"]}
    assert kind == "modern" or len(jobs) == len(
        report["results"]
    )  # an original's billed seconds are those of a job


def test_the_suite_of_8_billion_parameters_is_rehearsed(simulated: LocalLab) -> None:
    suite = REPO_ROOT / "suites" / "finetune_8b.yaml"
    report = simulated.succeed("run", str(suite), "--local", "--format", "json").json()
    assert report["verdict"]["is_simulated"] is True
    assert {result["outcome"] for result in report["results"]} == {"completed"}
    measured = {result["run"]["cell"]["cell_id"] for result in report["results"]}
    assert measured == {cell["cell_id"] for cell in report["cells"]}


def raced(lab: LocalLab, name: str, instance: str) -> tuple[Counter[tuple[str, str, str]], int]:
    """Its runs, each with its cell, its block and its outcome, and the number of its jobs."""
    suite = script_suite(
        lab.write_script("race_script", RACE),
        {"hyperparameters.does": [*SECONDS]},
        search="race",
        workload={"examples": 100_000},
        training={"instance": instance, "strategy": "single"},
        baseline={"hyperparameters.does": "best"},
        measurement={"trials": 3},
        limits={"max_usd": 10, "max_hours": 1, "max_job_seconds": 900},
    )
    results = lab.run_suite(name, suite).json()["results"]
    cells = [result["run"]["cell"]["hyperparameters"]["does"] for result in results]
    runs = zip(
        cells,
        (result["run"]["block"] for result in results),
        (result["outcome"] for result in results),
        strict=True,
    )
    return Counter(runs), len(
        {attempt["job_name"] for result in results for attempt in result["attempts"]}
    )


def test_a_rehearsed_race_has_the_runs_and_the_job_of_a_real_one(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    for does, seconds in SECONDS.items():
        trace = {
            "match": {"does": does},
            "step_seconds": seconds,
            "steps": STEPS,
            "warmup_factor": 1,
        }
        (traces / f"{does}.json").write_text(json.dumps(trace))
    with started_lab(tmp_path, "--grant-quotas", "1", "--traces", str(traces)) as lab:
        real = raced(lab, "real", "local.cpu")
        simulated = raced(lab, "simulated", "ml.g6.xlarge")
        assert simulated == real
        twice_more = {
            (does, block, "completed"): 1
            for does in ("best", "near")
            for block in ("1.1", "1+.1", "1+.2")
        }
        assert real == ({**twice_more, ("far", "1.1", "outpaced"): 1}, 1)
