"""`make mutants`: a seeded sample of the core's mutants against the unit tests, in a few workers, resumable."""

import argparse
import json
import queue
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutation.covering_tests import CoveringTests, record_covering_tests
from tests.mutation.sample import Case, cases_at, sample
from tests.mutation.trials import Tree

REPO_ROOT = Path(__file__).resolve().parents[2]
FOLDER = REPO_ROOT / "build" / "mutants"
REASONS = Path(__file__).with_name("survivors.json")
LEAST_SHARE_FOUND = 0.92


def main() -> int:
    options = _options()
    FOLDER.mkdir(parents=True, exist_ok=True)
    cases = (
        [case for place in options.only for case in cases_at(REPO_ROOT, place)]
        if options.only
        else sample(REPO_ROOT, options.count, options.seed)
    )
    found = _read_found()
    if options.again:
        found = {key: is_found for key, is_found in found.items() if is_found}
    open_ = [case for case in cases if case.key not in found]
    if open_:
        _try(open_, found, options)
    return _report(cases, found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mutants in the sample")
    parser.add_argument("--seed", type=int, default=8, help="of the sample")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no mutant after so long")
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at a time, each on one core")
    parser.add_argument("--again", action="store_true", help="try those again that no test found before")
    parser.add_argument("--tests", default="tests/unit/", help="folder of the tests; fewer than all find fewer mutants")
    parser.add_argument("--only", metavar="FILE[:LINE]", nargs="+", help="every mutant there, instead of a sample")
    return parser.parse_args()


def _try(cases: list[Case], found: dict[str, bool], options: argparse.Namespace) -> None:
    deadline = time.monotonic() + options.seconds
    trees = [Tree.copied_from(REPO_ROOT, FOLDER / f"tree-{number}") for number in range(options.workers)]
    try:
        covering = record_covering_tests(trees[0].folder, FOLDER, within=options.tests)
        free: queue.Queue[Tree] = queue.Queue()
        for tree in trees:
            tree.write_bytecode(covering.records)
            free.put(tree)
        with ThreadPoolExecutor(options.workers) as pool:
            list(pool.map(lambda case: _judge(case, free, covering, found, deadline), cases))
    finally:
        for tree in trees:
            tree.close()


def _judge(
    case: Case, free: "queue.Queue[Tree]", covering: CoveringTests, found: dict[str, bool], deadline: float
) -> None:
    begin = time.monotonic()
    if begin > deadline:
        return
    tree = free.get()
    try:
        failed = tree.finds(case.file, case.mutant, covering)
    finally:
        free.put(tree)
    found[case.key] = failed is not None
    result = {"key": case.key, "is_found": failed is not None, "by": failed, "seconds": time.monotonic() - begin}
    with (FOLDER / "found.jsonl").open("a") as results:
        results.write(json.dumps(result) + "\n")
    if failed is None:
        sys.stdout.write(f"no test finds {case.text}\n")
        sys.stdout.flush()


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
