"""The size of the product and of its central records rises only with a reason:
tests/data/ratchet.txt.
"""

import dataclasses
import io
import tokenize
from pathlib import Path

from traindyno.core.jobs.run_summary import RunSummary
from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.core.run.settings import Settings
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.verdict import Verdict

REPO_ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("traindyno", "training", "lambdas", "localcloud", "infra")
# What the layout of a file needs; comments are no tokens of the program either.
LAYOUT = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENCODING", "ENDMARKER"}
RECORDS = (CellRow, RunSummary, Settings, Verdict, MeasuredRun, Suite)


def held() -> dict[str, int]:
    """The last line of a name counts: ``name value reason``."""
    lines = (REPO_ROOT / "tests/data/ratchet.txt").read_text().splitlines()
    rows = [line.split(maxsplit=2) for line in lines if line and not line.startswith("#")]
    assert [row for row in rows if len(row) < 3] == [], "a line has a name, a value and a reason"
    return {name: int(value) for name, value, _ in rows}


def tokens_in(*folders: str) -> int:
    return sum(
        tokenize.tok_name[token.type] not in LAYOUT
        for folder in folders
        for path in (REPO_ROOT / folder).rglob("*.py")
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    )


def measured() -> dict[str, int]:
    fields = {record.__name__: len(dataclasses.fields(record)) for record in RECORDS}
    return {"product_tokens": tokens_in(*PRODUCT), "test_tokens": tokens_in("tests"), **fields}


def test_the_product_and_its_central_records_grow_only_with_a_reason() -> None:
    counts = measured()
    most = held()
    assert counts.keys() == most.keys()
    grown = {
        name: f"{value}, at most {most[name]}"
        for name, value in counts.items()
        if value > most[name]
    }
    assert grown == {}, (
        "take something out, or add a line with the new value and its reason to "
        "tests/data/ratchet.txt"
    )
