"""``python -m bench [GROUP ...]``: measures, prints and writes docs/performance.md; exit status 1 over a budget."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import document
from bench.figure_text import section_lines
from bench.figures import Section
from bench.groups import MODULES, TITLES, command, measure
from bench.machine import origin
from localcloud.home import REPO_ROOT

TERMINATED = 128 + signal.SIGTERM
DOCUMENT = REPO_ROOT / "docs" / "performance.md"


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _read(arguments)
    # So that what runs in the background is stopped at the end of its block.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    where = origin()
    is_over = False
    for group in asked.groups or MODULES:
        tell(f"{command(group)}{' --quick' if asked.quick else ''}")
        section = measure(group, is_quick=asked.quick)
        text = "\n".join(section_lines(section, where))
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        is_over |= any(figure.is_met is False for figure in section.figures)
        if not asked.quick:
            write(DOCUMENT, section, text)
    return 1 if is_over and not asked.quick else 0


def write(path: Path, section: Section, text: str) -> None:
    """After each group, so that the failure of a later group loses no results."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(document.merge(before, {section.title: text}, list(TITLES.values())), encoding="utf-8")


def tell(message: str) -> None:
    sys.stderr.write(f"{message}\n")


def _read(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(MODULES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="few repetitions and no document, to test that it works")
    read = parser.parse_args(arguments)
    unknown = [group for group in read.groups if group not in MODULES]
    if unknown:
        parser.error(f"no group {', '.join(unknown)}; there are {', '.join(MODULES)}")
    return read


if __name__ == "__main__":
    sys.exit(main())
