"""What ``make nightly`` runs beyond ``make test``: tests marked ``nightly``, and more cases of
others.

By hand, when the code that they judge changes: ``pytest -m nightly tests/simulations``, or with
``TRAINDYNO_NIGHTLY=1`` as often and with as many cases as ``make nightly``. A part of it:
``make nightly PART=1/4``; ``python -m tests.nightly 1/4`` then notes in tests/NIGHTLY.md that the
part passed.
"""

import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

NIGHTLY = bool(os.environ.get("TRAINDYNO_NIGHTLY"))
#: Such as "1/4"; empty: all of it.
PART = os.environ.get("TRAINDYNO_PART", "")
TABLE = Path(__file__).with_name("NIGHTLY.md")
#: Seconds that each group of tests took, by its name; one that is not in it, OTHER_SECONDS.
SECONDS = Path(__file__).with_name("data") / "nightly_seconds.json"
OTHER_SECONDS = 20.0


def parse_part(text: str) -> tuple[int, int]:
    """The part of ``"2/4"``, which counts from 1, and the number of parts."""
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if match is None or int(match[1]) > int(match[2]):
        raise SystemExit(f"PART={text}: expected a part of all parts, such as 1/4")
    return int(match[1]), int(match[2])


def deal(groups: Sequence[str], seconds: Mapping[str, float], parts: int) -> list[list[str]]:
    """Deals the groups of tests, the longest first, each to the part with the least to do."""
    dealt: list[list[str]] = [[] for _ in range(parts)]
    loads = [0.0] * parts
    by_length = sorted(set(groups), key=lambda group: (-seconds.get(group, OTHER_SECONDS), group))
    for group in by_length:
        part = loads.index(min(loads))
        dealt[part].append(group)
        loads[part] += seconds.get(group, OTHER_SECONDS)
    return dealt


def committed_seconds() -> dict[str, float]:
    """The seconds by which all parts of a commit are dealt.

    A part writes what it took into the file, and the next part would be dealt otherwise: a test
    could be in none. Without git, the file is read as it is.
    """
    shown = subprocess.run(
        ["git", "show", f"HEAD:./{SECONDS.name}"],
        cwd=SECONDS.parent,
        check=False,
        capture_output=True,
        text=True,
    )
    return dict(json.loads(shown.stdout if shown.returncode == 0 else SECONDS.read_text()))


def keep_seconds(took: Mapping[str, float]) -> None:
    """Writes what the groups of a part took beside those of other parts."""
    seconds = json.loads(SECONDS.read_text())
    seconds |= {name: round(spent, 1) for name, spent in took.items()}
    SECONDS.write_text(json.dumps(seconds, indent=1, sort_keys=True) + "\n")


def note_passed(part: str, table: str, *, commit: str, date: str) -> str:
    """The table with the row of this part: the commit on which it last passed."""
    kept = [line for line in table.splitlines() if not line.startswith(f"| {part} |")]
    return "\n".join([*kept, f"| {part} | {commit} | {date} |"]) + "\n"


if __name__ == "__main__":
    (passed,) = sys.argv[1:]
    parse_part(passed)
    head = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], check=True, capture_output=True, text=True
    )
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    TABLE.write_text(note_passed(passed, TABLE.read_text(), commit=head.stdout.strip(), date=today))
