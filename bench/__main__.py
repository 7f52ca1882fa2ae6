"""``python -m bench [GROUP ...]``: measures, prints and writes the figures.

All are in docs/results/performance.json, and their summary is in docs/performance.md.

Exit status 1 over a budget, and if the two sides of a comparison do unlike work.
"""

import argparse
import signal
import sys
from collections.abc import Sequence

from bench import document
from bench.figure_text import section_lines
from bench.groups import MODULES, TITLES, command, measure
from bench.kept import Kept
from bench.machine import commit, origin
from bench.tell import tell
from localcloud.home import REPO_ROOT

TERMINATED = 128 + signal.SIGTERM
DOCUMENT = REPO_ROOT / "docs" / "performance.md"
RESULTS = REPO_ROOT / "docs" / "results" / "performance.json"
KEPT = REPO_ROOT / "build" / "bench"


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _read(arguments)
    # SystemExit ends each block, which stops what it runs in the background.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    is_good = True
    for group in asked.groups or MODULES:
        tell(f"{command(group)}{' --quick' if asked.quick else ''}")
        is_good &= run_group(
            group,
            is_quick=asked.quick,
            is_resumed=asked.resume,
            beside=asked.beside,
            times=asked.times,
        )
    return 0 if is_good else 1


def run_group(
    group: str, *, is_quick: bool, is_resumed: bool, beside: int = 0, times: int | None = None
) -> bool:
    """Whether its two sides did equal work and, unless it is quick, its budgets are met."""
    folder = None if is_quick else KEPT / f"{group}-{commit()}"
    kept = Kept(folder=folder, is_resumed=is_resumed)
    section = measure(group, is_quick=is_quick, kept=kept, beside=beside, times=times)
    measured_at = origin()
    text = "\n".join(section_lines(section, measured_at))
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    for figure in section.failed_checks:
        tell(
            f"{figure.name} is {figure.value}: the sides do unlike work, so {group} was not written"
        )
    if section.why_unmeasured:
        tell(f"{section.why_unmeasured} {group} was not measured: the file keeps its section")
    elif not is_quick and not section.failed_checks:
        # After each group, so that the failure of a later one loses no results.
        document.write(DOCUMENT, RESULTS, section, measured_at, list(TITLES.values()))
    is_over = any(figure.is_met is False for figure in section.figures)
    return not section.failed_checks and (is_quick or not is_over)


def _read(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "groups", nargs="*", metavar="GROUP", help=f"of {', '.join(MODULES)}; default: all"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--quick",
        action="store_true",
        help="few repetitions, and nothing is written, to test that it works",
    )
    how.add_argument(
        "--resume",
        action="store_true",
        help="use the groups and cases that were measured on this commit, in build/",
    )
    parser.add_argument(
        "--beside",
        type=int,
        default=0,
        metavar="COUNT",
        help="for aa: busy processes of another program beside it",
    )
    parser.add_argument(
        "--times", type=int, metavar="COUNT", help="for aa: suites of each kind; default: 20"
    )
    read = parser.parse_args(arguments)
    unknown = [group for group in read.groups if group not in MODULES]
    if unknown:
        parser.error(f"no group {', '.join(unknown)}; there are {', '.join(MODULES)}")
    return read


if __name__ == "__main__":
    sys.exit(main())
