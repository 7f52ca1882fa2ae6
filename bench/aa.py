"""Suites of equal cells, beside the quickstart, on this machine itself.

They show how often a verdict is wrong, beside other work or without.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from bench.figures import Figure, Section, at_least, at_most, spread
from bench.groups import TITLES, command
from bench.own_cloud import OwnCloud, own_cloud
from bench.tell import tell
from localcloud.home import REPO_ROOT

SUITE = REPO_ROOT / "suites" / "quickstart.yaml"
SUITES = 20
QUICK_STEPS = 12
# AdamW's decay is one multiplication of a step, whatever its factor.
EQUAL: dict[str, list[Any]] = {"weight_decay": [0.0, 0.01], "padding": ["longest"]}
# Without packing, the quickstart's texts are half as long as the model's positions, and a larger
# batch uses the cores better.
BEST = ("batch 8", "longest")
CLAIMS = frozenset({"recommended", "only_one", "within_tolerance"})
#: Another program, which keeps one core busy.
OTHER_WORK = "while True: sum(range(10_000))"
LEAST_TRUE_SHARE = 90.0
MOST_SECONDS = 45
MOST_SECONDS_BESIDE = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a suite says."""

    finding: str
    #: The label of the recommended cell; None if no cell is recommended.
    cell: str | None
    seconds: float


def measure(*, is_quick: bool, beside: int = 0, times: int = SUITES) -> Section:
    """Runs suites of both kinds in turn.

    Args:
        is_quick: Whether one suite of each kind is enough.
        beside: The number of busy processes of another program.
        times: The number of suites of each kind.
    """
    suites = 1 if is_quick else times
    most_seconds = MOST_SECONDS_BESIDE if beside else MOST_SECONDS
    load = os.getloadavg()[0]
    with own_cloud() as cloud:
        cloud.traindyno("local", "up")
        with busy(beside):
            documents = [document(is_quick=is_quick), document(is_quick=is_quick, matrix=EQUAL)]
            # in turn, so that both kinds meet the same hours of the machine
            said = [
                [told(cloud, suite, f"{kind}-{number}") for kind, suite in enumerate(documents)]
                for number in range(suites)
            ]
    quickstarts, equal = (list(outcomes) for outcomes in zip(*said, strict=True))
    return Section(
        title=TITLES["aa_beside" if beside else "aa"],
        command=f"{command('aa_beside')} {beside}" if beside else command("aa"),
        figures=tuple(_figures(quickstarts, equal, most_seconds)),
        notes=(
            f"Findings of the equal cells: {_counts(equal)}; of the quickstart: "
            f"{_counts(quickstarts)}. {beside or 'No'} busy processes of another program ran "
            f"beside them. The load average of the machine was {load:.1f} before.",
        ),
    )


def _figures(quickstarts: list[Said], equal: list[Said], most_seconds: float) -> Iterator[Figure]:
    suites = len(quickstarts)
    recommended = [outcome.cell for outcome in quickstarts if outcome.cell is not None]
    true = [all(part in cell for part in BEST) for cell in recommended]
    yield Figure(
        name=f"suites of two equal cells that recommend one, of {suites}",
        value=sum(outcome.cell is not None for outcome in equal),
        unit="",
        budget=at_most(0),
    )
    yield Figure(
        name=f"quickstarts that recommend another cell than the best, of {suites}",
        value=true.count(False),
        unit="",
        budget=at_most(0),
    )
    yield Figure(
        name="quickstarts that recommend the best cell",
        value=100 * true.count(True) / suites,
        unit="%",
        budget=at_least(LEAST_TRUE_SHARE),
    )
    yield Figure(
        name="seconds of a quickstart",
        value=spread([outcome.seconds for outcome in quickstarts]),
        unit="s",
        budget=at_most(most_seconds),
    )
    yield Figure(
        name="seconds of a suite of equal cells",
        value=spread([outcome.seconds for outcome in equal]),
        unit="s",
    )


def _counts(said: list[Said]) -> str:
    counts = Counter(outcome.finding for outcome in said)
    return ", ".join(f"{count} {finding}" for finding, count in counts.items())


@contextmanager
def busy(count: int) -> Iterator[None]:
    others = [subprocess.Popen([sys.executable, "-c", OTHER_WORK]) for _ in range(count)]
    try:
        yield
    finally:
        for process in others:
            process.kill()
            process.wait()


def told(cloud: OwnCloud, suite: dict[str, Any], name: str) -> Said:
    path = cloud.folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(suite, sort_keys=False))
    answer = cloud.run_suite(path, name)
    verdict = answer.json()["verdict"]
    labels = {row["cell_id"]: row["label"] for row in verdict["rows"]}
    finding = verdict["finding"]
    cell = labels[verdict["recommended"]] if finding in CLAIMS else None
    tell(f"{name}: {finding}, {cell or 'no cell'}, {answer.seconds:.0f} s")
    return Said(finding=finding, cell=cell, seconds=answer.seconds)


def document(*, is_quick: bool, matrix: dict[str, list[Any]] | None = None) -> dict[str, Any]:
    """The quickstart, with other cells if there is a ``matrix`` of them."""
    suite: dict[str, Any] = yaml.safe_load(SUITE.read_text(encoding="utf-8"))
    if matrix is not None:
        del suite["baseline"]
        suite["matrix"] = matrix
    if is_quick:
        suite["measurement"] = {"trials": 2, "max_steps": QUICK_STEPS}
    return suite
