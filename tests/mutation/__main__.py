"""`make mutants`: a seeded sample of the core's mutants against the unit tests, in two workers, resumable."""

import argparse
import hashlib
import json
import queue
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.covering_tests import record_covering_tests
from tests.mutation.mutants import Mutant, find_mutants
from tests.mutation.trials import Tree

REPO_ROOT = Path(__file__).resolve().parents[2]
CORE = "traindyno/core"
FOLDER = REPO_ROOT / "build" / "mutants"
REASONS = Path(__file__).with_name("survivors.json")
LEAST_SHARE_FOUND = 0.92
WORKERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    file: str
    mutant: Mutant
    key: str

    @property
    def text(self) -> str:
        mutant = self.mutant
        return f"{self.file}:{mutant.line} {mutant.function}: {mutant.before} → {mutant.after}"

    @property
    def name(self) -> str:
        """Without the line, so that a reason outlives an edit above it."""
        return f"{self.file} {self.mutant.function}: {self.mutant.before} → {self.mutant.after}"


def sample(count: int, seed: int) -> list[Case]:
    """``count`` mutants of the core, each ranked by its own digest: an edit elsewhere keeps the others."""
    cases = [case for path in sorted((REPO_ROOT / CORE).rglob("*.py")) for case in _cases(path)]
    return sorted(cases, key=lambda case: _digest(f"{seed} {case.name} {case.mutant.path}"))[:count]


def _cases_at(place: str) -> list[Case]:
    file, _, line = place.partition(":")
    return [case for case in _cases(REPO_ROOT / file) if not line or case.mutant.line == int(line)]


def _cases(path: Path) -> list[Case]:
    source, file = path.read_text(), path.relative_to(REPO_ROOT).as_posix()
    return [
        Case(file=file, mutant=mutant, key=f"{file} {_digest(source)[:12]} {mutant.path} {mutant.after}")
        for mutant in find_mutants(source)
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def main() -> int:
    options = _options()
    FOLDER.mkdir(parents=True, exist_ok=True)
    cases = sample(options.count, options.seed) if options.only is None else _cases_at(options.only)
    found = _read_found()
    if options.again:
        found = {key: is_found for key, is_found in found.items() if is_found}
    open_ = [case for case in cases if case.key not in found]
    if open_:
        _try(open_, found, deadline=time.monotonic() + options.seconds)
    return _report(cases, found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mutants in the sample")
    parser.add_argument("--seed", type=int, default=8, help="of the sample")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no mutant after so long")
    parser.add_argument("--again", action="store_true", help="try those again that no test found before")
    parser.add_argument("--only", metavar="FILE[:LINE]", help="every mutant there, instead of a sample")
    return parser.parse_args()


def _try(cases: list[Case], found: dict[str, bool], *, deadline: float) -> None:
    trees: queue.Queue[Tree] = queue.Queue()
    for number in range(WORKERS):
        trees.put(Tree.copied_from(REPO_ROOT, FOLDER / f"tree-{number}"))
    first = trees.get()
    covering = record_covering_tests(first.folder, FOLDER)
    trees.put(first)

    def judge(case: Case) -> None:
        if time.monotonic() > deadline:
            return
        tree = trees.get()
        try:
            line = case.mutant.line
            is_found = tree.finds(
                case.file, case.mutant, covering.of(case.file, line), are_all=covering.are_all(case.file, line)
            )
        finally:
            trees.put(tree)
        found[case.key] = is_found
        with (FOLDER / "found.jsonl").open("a") as results:
            results.write(json.dumps({"key": case.key, "is_found": is_found}) + "\n")
        if not is_found:
            sys.stdout.write(f"no test finds {case.text}\n")
            sys.stdout.flush()

    with ThreadPoolExecutor(WORKERS) as workers:
        list(workers.map(judge, cases))


def _read_found() -> dict[str, bool]:
    path = FOLDER / "found.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {each["key"]: each["is_found"] for each in map(json.loads, lines)}


def _report(cases: list[Case], found: dict[str, bool]) -> int:
    """Exit status: 0 enough are found, 1 too few, 3 not all were tried yet."""
    reasons = json.loads(REASONS.read_text())
    tried = [case for case in cases if case.key in found]
    caught = sum(found[case.key] for case in tried)
    sys.stdout.write(f"{caught} of {len(tried)} mutants found ({len(cases)} in the sample)\n")
    for case in tried:
        if not found[case.key]:
            sys.stdout.write(f"  {case.text}\n      {reasons.get(case.name, 'no reason is known: add a test')}\n")
    if len(tried) < len(cases):
        return 3
    return 0 if caught >= LEAST_SHARE_FOUND * len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
