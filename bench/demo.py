"""The demo as a new user sees it: a local cloud from nothing, the quickstart suite, its report;
then once more.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from bench.alternation import alternate
from bench.figures import Figure, Section, at_most
from bench.groups import TITLES, command
from bench.own_cloud import OwnCloud, own_cloud
from bench.transitions import count_transitions
from localcloud.home import REPO_ROOT

DEMO_SECONDS = 120
OVERHEAD_RATIO = 1.25
TRANSITIONS = 8
SHARED_RATIO = 0.65
SUITE = REPO_ROOT / "suites" / "quickstart.yaml"
QUICK_STEPS = 12
ROUNDS = 3


def measure(*, is_quick: bool) -> Section:
    numbers = itertools.count(1)
    with own_cloud() as cloud:
        suite = shortened(SUITE, cloud.folder / "quickstart.yaml") if is_quick else SUITE
        up = cloud.traindyno("local", "up")
        first = cloud.run_suite(suite, "first")
        up_again = cloud.traindyno("local", "up")
        second = cloud.run_suite(suite, "second")
        rounds = 1 if is_quick else ROUNDS
        ratios = {
            search: shared_ratio(cloud, suite, search, rounds, numbers)
            for search in ("race", "grid")
        }
        report = first.json()
        results = report["results"]
        transitions = count_transitions(cloud.client("stepfunctions"), cloud.execution_arn("first"))
        wall_seconds = execution_seconds(cloud, "first")
    return Section(
        title=TITLES["demo"],
        command=command("demo"),
        figures=(
            Figure(
                name="`make demo` after installation",
                value=up.seconds + first.seconds,
                unit="s",
                budget=at_most(DEMO_SECONDS),
            ),
            Figure(name="of which `traindyno local up`", value=up.seconds, unit="s"),
            Figure(name="`make demo` again", value=up_again.seconds + second.seconds, unit="s"),
            Figure(
                name="suite's wall time ÷ its jobs' time, in a lane of one",
                value=wall_seconds / job_seconds([*report["preparations"], *results]),
                unit="×",
                budget=at_most(OVERHEAD_RATIO),
            ),
            Figure(
                name="the suite's seconds per run with shared jobs ÷ with separate ones, in turn",
                value=ratios["race"],
                unit="×",
                budget=at_most(SHARED_RATIO),
            ),
            Figure(
                name="the same where each cell has all its trials (search: grid)",
                value=ratios["grid"],
                unit="×",
            ),
            Figure(
                name="state transitions per run",
                value=transitions.total() / len(results),
                unit="",
                budget=at_most(TRANSITIONS),
            ),
        ),
        notes=(_note(len(results), transitions),),
    )


def _note(runs: int, transitions: Mapping[str, int]) -> str:
    return (
        f"{runs} runs. A job's time is from its creation to its end; the suite's from "
        "the execution's start to its end. With separate jobs the suite is a race too, in "
        "which no run ends early, and a round has a contender once; with shared ones four "
        "times, forward and backward, so that the numbers of runs differ. Transitions: "
        f"{', '.join(f'{count} {name}' for name, count in transitions.items())}."
    )


def job_seconds(results: list[dict[str, Any]]) -> float:
    """Sum of the jobs' seconds, each job once: a shared one until the last of its runs has
    ended.
    """
    seconds: dict[str, float] = {}
    for attempt in (attempt for result in results for attempt in result["attempts"]):
        duration = attempt["ended_at"] - attempt["submitted_at"]
        seconds[attempt["job_name"]] = max(duration, seconds.get(attempt["job_name"], duration))
    return math.fsum(seconds.values())


def execution_seconds(cloud: OwnCloud, name: str) -> float:
    execution = cloud.client("stepfunctions").describe_execution(
        executionArn=cloud.execution_arn(name)
    )
    return float((execution["stopDate"] - execution["startDate"]).total_seconds())


def shared_ratio(
    cloud: OwnCloud, suite: Path, search: str, rounds: int, numbers: Iterator[int]
) -> float:
    """The suite's seconds for each run with shared jobs, in those with separate ones; both name the
    search.
    """

    def seconds_per_run(jobs: str) -> float:
        name = f"{search}-{jobs}-{next(numbers)}"
        answer = cloud.run_suite(
            with_jobs(suite, cloud.folder / f"{name}.yaml", jobs, search), name
        )
        return answer.seconds / len(answer.json()["results"])

    compared = alternate(
        lambda: seconds_per_run("separate"), lambda: seconds_per_run("shared"), rounds=rounds
    )
    return statistics.median(compared.second) / statistics.median(compared.first)


def with_jobs(suite: Path, path: Path, jobs: str, search: str) -> Path:
    document = yaml.safe_load(suite.read_text())
    document["measurement"] = {"jobs": jobs}
    document["search"] = search
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def shortened(suite: Path, path: Path) -> Path:
    document = yaml.safe_load(suite.read_text())
    document["measurement"] = {"trials": 1, "max_steps": QUICK_STEPS}
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path
