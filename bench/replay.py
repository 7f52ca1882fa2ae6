"""Suites of a hundred to ten thousand runs, simulated by the replay engine: the cost per run must
not grow.

``TRAINDYNO_BENCH_RUNS=100,1000`` omits the largest suite, which takes most of the time.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from bench.demo import execution_seconds
from bench.figures import Budget, Figure, Section, at_most
from bench.groups import TITLES, command
from bench.kept import Kept
from bench.own_cloud import OwnCloud, own_cloud
from bench.tell import tell
from bench.transitions import count_transitions
from localcloud import cloud as local_cloud
from localcloud import deployment

RUNS_VARIABLE = "TRAINDYNO_BENCH_RUNS"
RUN_COUNTS = (100, 1000, 10_000)
QUICK_RUN_COUNTS = (24, 48)
TRANSITIONS = 8
GROWTH = 1.02
TELL_SECONDS = 60.0
INSTANCES = ("ml.g4dn.xlarge", "ml.g5.2xlarge", "ml.g6.xlarge", "ml.g5.12xlarge")
TRIALS = 2
TRACE = {"step_seconds": 2, "steps": 20, "load_seconds": 10}
SERVICE_OPTIONS = ("--simulate-all", "--grant-quotas", "10000", "--speed-up", "3000")
CONTEXT = {"lanes_at_once": str(len(INSTANCES)), "lane_concurrency": "4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """A rehearsed suite."""

    runs: int
    outcomes: Mapping[str, int]
    seconds: float
    #: CPU time of the local cloud.
    cpu_seconds: float
    #: State transitions of all runs together.
    transitions: int
    #: DynamoDB items of all runs together.
    items: int


def measure(*, is_quick: bool, kept: Kept) -> Section:
    rehearsed = [
        kept.case(f"{count} runs", Rehearsed, partial(rehearse_alone, count))
        for count in run_counts(is_quick=is_quick)
    ]
    return Section(
        title=TITLES["replay"],
        command=command("replay"),
        figures=(
            *(figure for rehearsal in rehearsed for figure in figures(rehearsal)),
            *growth(rehearsed[0], rehearsed[-1]),
        ),
        notes=tuple(outcome_text(rehearsal) for rehearsal in rehearsed),
    )


def rehearse_alone(runs: int) -> Rehearsed:
    """Rehearses the suite in a local cloud of its own."""
    with own_cloud() as cloud:
        traces = cloud.folder / "traces"
        traces.mkdir()
        (traces / "trace.json").write_text(json.dumps(TRACE))
        ports = local_cloud.start(
            cloud.home,
            tell=lambda _: None,
            service_options=(*SERVICE_OPTIONS, "--traces", str(traces)),
        )
        deployment.deploy(cloud.home, ports, tell=lambda _: None, context=CONTEXT)
        rehearsed = rehearse(cloud, runs)
        # Its processes are this one's children: another process would wait for them in vain.
        local_cloud.stop(cloud.home)
    return rehearsed


def run_counts(*, is_quick: bool) -> tuple[int, ...]:
    chosen = os.environ.get(RUNS_VARIABLE)
    if chosen:
        return tuple(int(count) for count in chosen.split(","))
    return QUICK_RUN_COUNTS if is_quick else RUN_COUNTS


def rehearse(cloud: OwnCloud, runs: int) -> Rehearsed:
    name = f"runs-{runs}"
    items_before = count_items(cloud)
    cpu_before = cloud.cpu_seconds()
    suite = write_suite(cloud.folder / f"{name}.yaml", runs)
    cloud.traindyno("run", str(suite), "--local", "--no-wait", "--name", name)
    wait_for_end(cloud, name, runs)
    cpu_seconds = cloud.cpu_seconds() - cpu_before
    tell(f"{name}: reading its report and its transitions")
    reports = str(cloud.folder / "reports")
    report = cloud.traindyno(
        "report", name, "--local", "--format", "json", "--output", reports
    ).json()
    return Rehearsed(
        runs=len(report["results"]),
        outcomes=Counter(result["outcome"] for result in report["results"]),
        seconds=execution_seconds(cloud, name),
        cpu_seconds=cpu_seconds,
        transitions=count_transitions(
            cloud.client("stepfunctions"), cloud.execution_arn(name)
        ).total(),
        items=count_items(cloud) - items_before,
    )


def wait_for_end(cloud: OwnCloud, name: str, runs: int) -> None:
    began = time.monotonic()
    ended_before = cloud.ended_jobs()
    stepfunctions = cloud.client("stepfunctions")
    arn = cloud.execution_arn(name)
    told_at = began
    while stepfunctions.describe_execution(executionArn=arn)["status"] == "RUNNING":
        now = time.monotonic()
        if now - told_at >= TELL_SECONDS:
            ended = cloud.ended_jobs() - ended_before
            told_at = now
            tell(
                f"{name}: {ended:,} of {runs:,} jobs ended in {now - began:.0f} s, "
                f"{ended / (now - began):.1f} a second"
            )
        time.sleep(0.5)


def write_suite(path: Path, runs: int) -> Path:
    document: dict[str, Any] = {
        "name": path.stem,
        "goal": "fastest",
        "search": "grid",
        "workload": {
            "task": "causal-lm",
            "model": {
                "config": {
                    "model_type": "gpt2",
                    "n_layer": 2,
                    "n_embd": 64,
                    "n_head": 2,
                    "n_positions": 64,
                }
            },
            "tokenizer": {"train_vocabulary_size": 1000},
            "dataset": {"format": "synthetic"},
            "sequence_length": 64,
            "examples": 1_000_000,
        },
        "training": {"strategy": "ddp", "precision": "bf16"},
        "matrix": {
            "instance": list(INSTANCES),
            "batch_size_per_device": list(range(1, runs // (len(INSTANCES) * TRIALS) + 1)),
        },
        "measurement": {"trials": TRIALS, "max_steps": TRACE["steps"], "jobs": "separate"},
        "limits": {"max_usd": 10_000_000, "max_hours": 10_000, "max_job_seconds": 3600},
    }
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def count_items(cloud: OwnCloud) -> int:
    pages = (
        cloud.client("dynamodb")
        .get_paginator("scan")
        .paginate(TableName=cloud.deployment().table, Select="COUNT")
    )
    return sum(page["Count"] for page in pages)


def figures(done: Rehearsed) -> tuple[Figure, ...]:
    def figure(name: str, value: float, unit: str = "", budget: Budget | None = None) -> Figure:
        return Figure(name=f"{done.runs:,} runs: {name}", value=value, unit=unit, budget=budget)

    return (
        figure("wall time", done.seconds, "s"),
        figure("runs per second", done.runs / done.seconds),
        figure("CPU time of the local cloud per run", done.cpu_seconds / done.runs * 1000, "ms"),
        figure(
            "state transitions per run", done.transitions / done.runs, budget=at_most(TRANSITIONS)
        ),
        figure("DynamoDB items per run", done.items / done.runs),
    )


def growth(fewest: Rehearsed, most: Rehearsed) -> tuple[Figure, ...]:
    """The growth of a run's cost.

    It may fall: a larger suite divides its own part among more runs.
    """
    name = f"per run, {most.runs:,} runs ÷ {fewest.runs:,} runs"
    transitions = (most.transitions / most.runs) / (fewest.transitions / fewest.runs)
    items = (most.items / most.runs) / (fewest.items / fewest.runs)
    return (
        Figure(
            name=f"state transitions {name}", value=transitions, unit="×", budget=at_most(GROWTH)
        ),
        Figure(name=f"DynamoDB items {name}", value=items, unit="×", budget=at_most(GROWTH)),
    )


def outcome_text(done: Rehearsed) -> str:
    counted = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(done.outcomes.items()))
    return f"Outcomes of {done.runs:,} simulated runs: {counted}."
