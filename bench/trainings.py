"""Trainings of a verdict's cell in the local cloud: how often time and cost end inside their
projected intervals.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.figures import Figure, Section, at_least, spread
from bench.groups import TITLES, command
from bench.own_cloud import own_cloud
from bench.tell import tell
from localcloud.home import REPO_ROOT

LEAST_INSIDE = 17
BATCH = 8
SCRIPT = """
import os, pathlib, sys, time
from traindyno.callbacks import step_log

given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
for number in range(1, int(given["--steps"]) + 1):
    with step_log.step(samples=8):
        until = time.perf_counter() + 0.06
        while time.perf_counter() < until:
            sum(range(1000))
pathlib.Path(os.environ["SM_MODEL_DIR"], "model.txt").write_text("trained")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    trainings: int
    steps: int
    trials: int
    trial_steps: int


WHOLE = Scale(trainings=20, steps=250, trials=4, trial_steps=100)
QUICK = Scale(trainings=2, steps=40, trials=2, trial_steps=20)
NOTES = (
    f"Each training is of {WHOLE.steps} steps: the quickstart's model, or a script that computes "
    f"for 60 ms a step. Its verdict rests on {WHOLE.trials} trials of {WHOLE.trial_steps} steps. "
    "One after the other, on this machine alone. Projected: the mean.",
)


def measure(*, is_quick: bool) -> Section:
    scale = QUICK if is_quick else WHOLE
    with own_cloud() as cloud:
        cloud.traindyno("local", "up")
        suites = {"quickstart": _quickstart(scale), "script": _script(scale, cloud.folder)}
        for name, suite in suites.items():
            path = cloud.folder / f"{name}.yaml"
            path.write_text(yaml.safe_dump({**suite, "name": name}), encoding="utf-8")
            cloud.run_suite(path, name)
        reports = ["--output", str(cloud.folder / "reports")]
        for number in range(scale.trainings // len(suites)):
            for name in suites:
                steps = ["--set", f"steps={scale.steps}"] if name == "script" else []
                cloud.traindyno(
                    "train", name, "--local", "--name", f"{name}-{number}", *steps, *reports
                )
        listed = cloud.traindyno(
            "list", "--projected", "--local", "--format", "json", "--limit", "100"
        ).json()
    trained = [execution for execution in listed["executions"] if execution["of"] == "training"]
    assert len(trained) == scale.trainings, listed
    return Section(
        title=TITLES["trainings"],
        command=command("trainings"),
        figures=tuple(_figures(trained, is_quick=is_quick)),
        notes=NOTES,
    )


def _quickstart(scale: Scale) -> dict[str, Any]:
    read = yaml.safe_load((REPO_ROOT / "suites" / "quickstart.yaml").read_text(encoding="utf-8"))
    suite = {
        name: value for name, value in read.items() if name not in ("baseline", "matrix", "include")
    }
    return {
        **suite,
        "search": "grid",
        "workload": {**suite["workload"], "examples": BATCH * scale.steps},
        "training": {**suite["training"], "padding": "longest", "batch_size_per_device": BATCH},
        "measurement": {"trials": scale.trials, "max_steps": scale.trial_steps},
    }


def _script(scale: Scale, folder: Path) -> dict[str, Any]:
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text(SCRIPT, encoding="utf-8")
    return {
        "goal": "fastest",
        "search": "grid",
        "workload": {
            "source": str(folder / "code"),
            "entry_point": "train.py",
            "examples": BATCH * scale.steps,
            "hyperparameters": {"steps": scale.trial_steps},
        },
        "training": {"instance": "local.cpu", "strategy": "single"},
        "measurement": {"trials": scale.trials},
        "limits": {"max_usd": 1, "max_hours": 1, "max_job_seconds": 600},
    }


def _figures(trained: Sequence[dict[str, Any]], *, is_quick: bool) -> Iterator[Figure]:
    for what in ("time", "cost"):
        comparisons = {
            execution["execution_id"]: comparison
            for execution in trained
            for comparison in execution["compared"]
            if comparison["quantity"] == what
        }
        for name, comparison in sorted(comparisons.items()):
            figures = f"{comparison['actual']:.5g}, projected {comparison['projected']:.5g}"
            tell(f"{name}: {what} {figures}, {comparison['interval']}")
        inside = sum(comparison["side"] == "inside" for comparison in comparisons.values())
        ratios = [comparison["ratio"] for comparison in comparisons.values()]
        least = None if is_quick else at_least(LEAST_INSIDE)
        yield Figure(
            name=f"{what} inside its interval, of {len(comparisons)} trainings",
            value=inside,
            unit="",
            budget=least,
        )
        yield Figure(name=f"{what}: actual ÷ projected", value=spread(ratios), unit="×")
