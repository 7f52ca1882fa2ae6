"""Suites of equal cells, and the quickstart's of unequal ones, on this machine itself: how often
they say what is not so, beside other work or without.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from bench.figures import Figure, Section, at_least, at_most, spread
from bench.groups import TITLES, command
from bench.own_cloud import OwnCloud, own_cloud
from localcloud.home import REPO_ROOT

SUITE = REPO_ROOT / "suites" / "quickstart.yaml"
SUITES, QUICK_STEPS = 20, 12
# AdamW's decay is one multiplication of a step, whatever its factor.
EQUAL: dict[str, list[Any]] = {"weight_decay": [0.0, 0.01], "padding": ["longest"]}
# Without packing, the quickstart's texts are half as long as the model's positions.
UNEQUAL: dict[str, list[Any]] = {"padding": ["max-length", "longest"]}
BEST = "longest"
CLAIMS = frozenset({"recommended", "only_one", "within_tolerance"})
#: Another program, which keeps one core busy.
OTHER_WORK = "while True: sum(range(10_000))"
LEAST_TRUE_SHARE = 90.0


def measure(*, is_quick: bool, beside: int = 0) -> Section:
    """``beside``: so many busy processes of another program."""
    suites = 1 if is_quick else SUITES
    with own_cloud() as cloud:
        cloud.traindyno("local", "up")
        with busy(beside):
            equal = [told(cloud, EQUAL, f"equal-{n}", is_quick=is_quick) for n in range(suites)]
            unequal = [
                told(cloud, UNEQUAL, f"unequal-{n}", is_quick=is_quick) for n in range(suites)
            ]
    true = [cell == BEST for _, cell, _ in unequal if cell is not None]
    return Section(
        title=TITLES["aa_beside" if beside else "aa"],
        command=f"{command('aa_beside')} {beside}" if beside else command("aa"),
        figures=(
            Figure(
                name=f"suites of two equal cells that recommend one, of {suites}",
                value=sum(cell is not None for finding, cell, _ in equal if finding in CLAIMS),
                unit="",
                budget=at_most(0),
            ),
            Figure(
                name=f"suites of two kinds of padding that recommend the slower, of {suites}",
                value=true.count(False),
                unit="",
                budget=at_most(0),
            ),
            Figure(
                name="those that recommend the faster one",
                value=100 * true.count(True) / suites,
                unit="%",
                budget=at_least(LEAST_TRUE_SHARE),
            ),
            Figure(
                name="seconds of a suite of equal cells",
                value=spread([seconds for *_, seconds in equal]),
                unit="s",
            ),
            Figure(
                name="seconds of a suite of unequal ones",
                value=spread([seconds for *_, seconds in unequal]),
                unit="s",
            ),
        ),
        notes=(
            "Findings of the equal cells: "
            f"{', '.join(f'{n} {each}' for each, n in Counter(e[0] for e in equal).items())}. "
            f"{beside or 'No'} busy processes of another program ran beside it.",
        ),
    )


@contextmanager
def busy(count: int) -> Iterator[None]:
    others = [subprocess.Popen([sys.executable, "-c", OTHER_WORK]) for _ in range(count)]
    try:
        yield
    finally:
        for each in others:
            each.kill()
            each.wait()


def told(
    cloud: OwnCloud, matrix: dict[str, list[Any]], name: str, *, is_quick: bool
) -> tuple[str, str | None, float]:
    """The finding, the padding of the cell that is recommended, and the suite's seconds."""
    path = cloud.folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document(SUITE, matrix, is_quick=is_quick), sort_keys=False))
    answer = cloud.run_suite(path, name)
    report = answer.json()
    verdict = report["verdict"]
    label = next(
        (row["label"] for row in verdict["rows"] if row["cell_id"] == verdict["recommended"]), ""
    )
    is_claimed = verdict["finding"] in CLAIMS
    return verdict["finding"], padding_of(label) if is_claimed else None, answer.seconds


def document(suite: Path, matrix: dict[str, list[Any]], *, is_quick: bool) -> dict[str, Any]:
    """The quickstart with other cells."""
    found: dict[str, Any] = yaml.safe_load(suite.read_text(encoding="utf-8"))
    kept = {name: value for name, value in found.items() if name not in ("baseline", "include")}
    kept["matrix"] = matrix
    if is_quick:
        kept["measurement"] = {"trials": 2, "max_steps": QUICK_STEPS}
    return kept


def padding_of(label: str) -> str:
    """The cells differ by their padding, or by nothing that a label of it names."""
    return BEST if BEST in label else label
