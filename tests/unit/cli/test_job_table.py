"""What a plan says of the jobs that runs share, of what is before and beside them, and of their
seeds.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tests.unit.planned_suites import ample_quotas, past_cell, prices_of
from tests.unit.suites import script_document, small_document, unprepared_document, unprepared_suite
from traindyno.cli.display.plan_totals import job_table, jobs_of_plan, seeds_text, totals_table
from traindyno.core.planning.jobs import NO_OTHER, TOO_LONG
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import Search
from traindyno.core.suite.suite import Suite

G5 = "ml.g5.xlarge"
G6 = "ml.g6.xlarge"
HUB: dict[str, Any] = {**unprepared_document()["workload"], "model": "me/model"}
LIMIT = (
    "before the first run: $0.18 at the limit of 1800 s and 960 s for the image, to stop and to "
    "upload"
)
READ_THERE = (
    "me/model: one of these jobs copies it from the Hub to the lab's bucket; every run reads it "
    "there"
)
EACH = "7 to 9, one for each trial, the same in all cells"


def suite_of(jobs: str) -> Suite:
    instances = {
        "training": {},
        "matrix": {"instance": [G5], "precision": ["fp32", "bf16"]},
        "baseline": {},
    }
    return unprepared_suite(
        **instances, include=[{"instance": G6}], measurement={"trials": 3, "jobs": jobs}
    )


def plan_of(suite: Suite) -> Plan:
    return plan_suite(suite, execution_id="plan", prices={}, quotas={}, histories={})


def text_of(table: object) -> str:
    console = Console(width=400, record=True)
    console.print(table)
    return console.export_text()


@pytest.mark.parametrize(
    ("examples", "told"),
    [
        # 2 cells × 3 trials × 200 steps of 1
        (1_200, None),
        (
            1_000,
            (
                "up to 1,200 examples, the whole work has 1,000: measuring costs more than it "
                "can save; max_steps: 166"
            ),
        ),
        (
            20,
            (
                "up to 120 examples, the whole work has 20: measuring costs more than it can "
                "save; one run of each"
            ),
        ),
    ],
)
def test_a_plan_says_if_measuring_is_more_than_the_work(examples: int, told: str | None) -> None:
    workload = {**unprepared_document()["workload"], "examples": examples}
    suite = unprepared_suite(workload=workload, measurement={"trials": 3, "max_steps": 200})
    totals = " ".join(text_of(totals_table(suite, plan_of(suite), None)).split())
    assert ("measuring costs more" in totals) is (told is not None)
    assert told is None or told in totals
    assert "expected time unknown: no basis before each cell has been measured once" in totals


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"workload": small_document()["workload"]},
            [f"data tokenised by 1 job on ml.m7i.xlarge {LIMIT}; no job if"],
        ),
        (
            {"workload": HUB},
            [
                f"model copied by 1 job on ml.m7i.xlarge {LIMIT}",
                "if the model staging and every job takes one attempt",
                f"{READ_THERE}; no revision: copied again for each execution",
            ],
        ),
        (
            {"workload": {**small_document()["workload"], "model": "me/model", "tokenizer": None}},
            [
                (
                    "data tokenised, and the model copied, by 2 jobs, one after another, on "
                    "ml.m7i.xlarge before the first"
                ),
                f"model {READ_THERE}; no revision",
            ],
        ),
        (
            {"workload": {**HUB, "model": {"path": "me/model", "revision": "main"}}},
            [f"{READ_THERE}; revision main is no commit: copied again for each execution"],
        ),
        (
            {
                "workload": {
                    **HUB,
                    "model": {"path": "me/model", "revision": "0123456789abcdef0123" * 2},
                }
            },
            [READ_THERE],
        ),
        (
            {"training": {"instance": G5, "batch_size_per_device": {"search": "largest"}}},
            # Eleven probes of 600 s are more than the job's limit of 1800 s: 2 x 0.5 h at $1.408
            [
                (
                    "2 cells search their batch before the first trial: up to 11 probes of 8 "
                    "steps each, or 6 where"
                ),
                (
                    "at most 30 min for each cell and $1.41 in all, within the limit and the "
                    "amounts below"
                ),
            ],
        ),
    ],
    ids=["data", "model", "both", "branch", "commit", "batch"],
)
def test_a_plan_names_the_jobs_before_and_beside_the_runs(
    changes: dict[str, Any], told: list[str]
) -> None:
    suite = unprepared_suite(**changes)
    prices = prices_of({G5: "1.408", "ml.m7i.xlarge": "0.24"})
    planned = plan_suite(
        suite, execution_id="plan", prices=prices, quotas=ample_quotas(suite), histories={}
    )
    totals = " ".join(text_of(totals_table(suite, planned, None)).split())
    assert [part for part in told if part not in totals] == [], totals
    for words in ("revision", "tokenised", "the Hub", "search their"):
        assert (words in totals) == (words in " ".join(told)), words


def test_the_plan_names_cells_sharing_a_job_and_why_one_stands_alone() -> None:
    suite = suite_of("shared")
    planned = plan_of(suite)
    told = text_of(job_table(suite, planned))
    shared, alone = (next(line for line in told.splitlines() if name in line) for name in (G5, G6))
    assert all(
        name in shared for name in ("fp32", "bf16", "46 min")
    )  # 480 s for the image, 1,800 s, and 480 s to end
    assert "no other cell needs the same instances and image" in alone
    jobs = jobs_of_plan(suite, planned)
    assert sorted(len(job.cell_ids) for job in jobs) == [1, 2]
    assert {job.longest_seconds for job in jobs} == {2760}
    totals = text_of(totals_table(suite, planned, None))
    assert "9: 3 cells × 3 trials in 6 jobs" in totals
    assert "in the first round" not in totals
    assert (
        "all 5 attempts of every job, and one more for each further run of the job, reach the limit"
        in totals
    )


def test_a_cell_filling_a_job_alone_differs_from_one_without_another() -> None:
    suite = suite_of("shared")
    long = {cell.cell_id: past_cell(cell.cell_id, 1800) for cell in suite.cells}
    planned = plan_suite(suite, execution_id="plan", prices={}, quotas={}, histories=long)
    reasons = Counter(job.why_alone for job in jobs_of_plan(suite, planned))
    assert reasons == {TOO_LONG: 2, NO_OTHER: 1}


def test_of_a_race_the_further_jobs_are_told_too() -> None:
    suite = replace(suite_of("shared"), search=Search.RACE)
    planned = plan_of(suite)
    told = text_of(job_table(suite, planned))
    again = [line for line in told.splitlines() if "again, if close behind the best one" in line]
    assert len(again) == 2
    assert all("up to 1" in line for line in again)
    assert any("up to 2 cells, forward and backward" in line for line in again)
    assert any("ml.g6.xlarge · fp32, 2 times" in line for line in again)
    totals = text_of(totals_table(suite, planned, None))
    assert (
        "at most 9 in 4 jobs: 3 in the first round, then only cells close behind the best "
        "one, up to 3"
    ) in totals


def test_with_separate_jobs_nothing_is_said_of_them() -> None:
    suite = suite_of("separate")
    assert jobs_of_plan(suite, plan_of(suite)) == []
    totals = text_of(totals_table(suite, plan_of(suite), None))
    assert "in 9 jobs" not in totals
    assert "of its own" not in totals


def test_one_trial_and_one_job_are_in_the_singular() -> None:
    suite = unprepared_suite(measurement={"trials": 1})
    assert "2: 2 cells × 1 trial in 1 job" in text_of(totals_table(suite, plan_of(suite), None))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (unprepared_document(), EACH),
        (unprepared_document(measurement={"trials": 1}), "7"),
        (
            unprepared_document(matrix={"seed": [1, 5]}),
            "the seeds of the cells, in all trials: the suite compares seeds",
        ),
        (
            script_document(),
            (
                f"{EACH}, in TRAINDYNO_SEED; if the script does not take it, losses and quality "
                "hold for its own seed only"
            ),
        ),
        (
            script_document(measurement={"trials": 3, "seed_argument": "random-seed"}),
            f"{EACH}, as the argument random-seed",
        ),
    ],
    ids=["built in", "one trial", "axis", "script", "argument"],
)
def test_a_plan_names_the_seeds_of_the_trials(document: dict[str, Any], expected: str) -> None:
    is_axis = "seed" in document["matrix"]
    training = {**document["training"], **({} if is_axis else {"seed": 7})}
    measurement = {
        "trials": 3,
        **(document["measurement"] if document["measurement"] != {"trials": 2} else {}),
    }
    baseline = {} if is_axis else document["baseline"]
    suite = parse_suite(
        {**document, "training": training, "measurement": measurement, "baseline": baseline}
    )
    assert seeds_text(suite, suite.cells[0].settings.seed) == expected
