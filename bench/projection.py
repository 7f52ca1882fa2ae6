"""Short trials of six kinds of cells, then long runs of the same work: how far the projection is from what happens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from bench.figures import Figure, Section, at_most
from bench.groups import TITLES, command
from bench.own_cloud import own_cloud

MEDIAN_ERROR = 0.03
SHORT_STEPS, LONG_STEPS = 80, 1_600
TRIALS, LONG_RUNS = 5, 1
BATCH_SIZE, LARGEST_BATCH_SIZE = 8, 16
CELLS: tuple[Mapping[str, Any], ...] = (
    {},
    {"batch_size_per_device": LARGEST_BATCH_SIZE},
    {"gradient_accumulation_steps": 2},
    {"loader_workers": 1},
    {"precision": "bf16"},
    {"padding": "longest"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """A long run's wall-clock seconds beside the interval that its cell's short trials gave; None if they gave none."""

    label: str
    seconds: float
    low: float | None
    high: float | None

    @property
    def is_covered(self) -> bool:
        return self.low is not None and self.high is not None and self.low <= self.seconds <= self.high

    @property
    def error(self) -> float | None:
        """Error of the interval's centre, a share."""
        return None if self.low is None or self.high is None else sqrt(self.low * self.high) / self.seconds - 1


def measure(*, is_quick: bool) -> Section:
    """Every long run does at least ten times the steps of a short one."""
    short_steps, long_steps = (20, 60) if is_quick else (SHORT_STEPS, LONG_STEPS)
    cells = CELLS[:1] if is_quick else CELLS
    examples = long_steps * BATCH_SIZE
    with own_cloud() as cloud:
        short = write_suite(cloud.folder / "short.yaml", cells, examples, max_steps=short_steps, trials=TRIALS)
        long = write_suite(cloud.folder / "long.yaml", cells, examples, max_steps=long_steps, trials=LONG_RUNS)
        cloud.traindyno("local", "up")
        predicted = cloud.run_suite(short, "short").json()
        later = later_runs(predicted, cloud.run_suite(long, "long").json())
    return Section(
        title=TITLES["projection"],
        command=command("projection"),
        figures=figures(later),
        notes=tuple(later_text(each) for each in later),
    )


def write_suite(path: Path, cells: Sequence[Mapping[str, Any]], examples: int, *, max_steps: int, trials: int) -> Path:
    """Equal suites but for the number of steps and trials, so that their cells have the same ids."""
    document = {
        "name": path.stem,
        "goal": "fastest",
        "workload": {
            "task": "causal-lm",
            "model": {"config": {"model_type": "gpt2", "n_layer": 2, "n_embd": 128, "n_head": 4, "n_positions": 64}},
            "tokenizer": {"train_vocabulary_size": 2048},
            "dataset": {"path": "sample:python-standard-library", "format": "text"},
            "sequence_length": 64,
            "examples": examples,
        },
        "training": {
            "instance": "local.cpu",
            "strategy": "single",
            "packing": False,
            "learning_rate": {"base": 3.0e-4},
        },
        "baseline": {"batch_size_per_device": BATCH_SIZE},
        "matrix": {"batch_size_per_device": [BATCH_SIZE]},
        "include": [dict(cell) for cell in cells if cell],
        "measurement": {"trials": trials, "max_steps": max_steps, "jobs": "separate"},
        "limits": {"max_usd": 1, "max_hours": 1, "max_job_seconds": 600},
        "search": "grid",
    }
    if not document["include"]:
        del document["include"]
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def later_runs(short: Mapping[str, Any], long: Mapping[str, Any]) -> list[Later]:
    """The completed long runs of two reports (JSON), with what the short runs predicted for their cells."""
    predictions = {row["cell_id"]: (row["prediction"] or {}).get("seconds") or {} for row in short["verdict"]["rows"]}
    return [
        Later(
            label=result["run"]["cell"]["label"] or "base",
            seconds=sum(result["attempts"][-1]["phase_seconds"].values()),
            low=predictions[result["run"]["cell"]["cell_id"]].get("low"),
            high=predictions[result["run"]["cell"]["cell_id"]].get("high"),
        )
        for result in long["results"]
        if result["outcome"] == "completed"
    ]


def figures(later: Sequence[Later]) -> tuple[Figure, ...]:
    given = [each for each in later if each.error is not None]
    errors = [abs(each.error) for each in given if each.error is not None]
    return (
        Figure(name="long runs", value=len(later), unit=""),
        Figure(name="of these, with an interval from steady short trials", value=len(given), unit=""),
        Figure(
            name="within the 90 % prediction interval",
            value=100 * sum(each.is_covered for each in given) / len(given) if given else None,
            unit="%",
        ),
        Figure(
            name="median error of the projected time",
            value=100 * median(errors) if errors else None,
            unit="%",
            budget=at_most(100 * MEDIAN_ERROR),
        ),
    )


def later_text(later: Later) -> str:
    if later.low is None or later.high is None or later.error is None:
        return f"{later.label}: {later.seconds:.1f} s; its short trials gave no interval."
    return (
        f"{later.label}: {later.seconds:.1f} s, predicted {later.low:.1f} to {later.high:.1f} s; "
        f"the centre is {later.error:+.1%} off."
    )
