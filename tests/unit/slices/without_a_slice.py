"""A lab in memory takes in the quickstart as a grid, measures its runs and judges them, and the
command line starts.

``test_taken_out`` runs it on copies of the package that lack one slice each. It reads a report that
the whole package has written, and writes it as it was.
"""

import json
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import traindyno
from tests.unit.lab_in_memory import EXECUTION, NOW
from tests.unit.planned_lab import (
    FixedQuotas,
    empty_lab,
    items_of_round,
    judge_execution,
    measure,
    take_in,
)
from traindyno.api.suite_loading import load_suite
from traindyno.cli.display.verdict_table import print_verdict
from traindyno.cli.main import commands
from traindyno.cli.output import STANDARD_OUTPUT
from traindyno.core.s3_keys import report_data_key, report_html_key
from traindyno.core.verdict.report_data import parse_report, report_document
from traindyno.features import FEATURES
from traindyno.lab.check_quotas import check_quotas

QUICKSTART = Path(__file__).parents[3] / "suites/quickstart.yaml"


def main(report: Path) -> None:
    written = json.loads(report.read_text())
    read = parse_report(written)
    assert json.loads(json.dumps(report_document(read))) == written
    print_verdict(STANDARD_OUTPUT, read, FEATURES)
    judged = judge_quickstart()
    assert parse_report(judged).verdict.recommended is not None
    print_verdict(STANDARD_OUTPUT, parse_report(judged), FEATURES)
    started = CliRunner().invoke(commands, ["--help"])
    assert (started.exit_code, "plan" in started.output) == (0, True), started.output
    sys.stdout.write(f"{traindyno.__file__}\njudged\n")


def judge_quickstart(**sections: Any) -> dict[str, Any]:
    """The data of its report; ``sections``: further ones of the suite."""
    loaded = load_suite(QUICKSTART, local=True).document
    workload = {
        **loaded["workload"],
        "dataset": {"format": "synthetic"},
    }  # which no job has to prepare
    lab = empty_lab()
    take_in(
        lab, {**loaded, "workload": workload, "search": "grid", **sections}, instance="local.cpu"
    )
    check_quotas(EXECUTION, quotas=FixedQuotas(4), bucket=lab.bucket, now=NOW)
    for item in items_of_round(lab):
        measure(lab, item)
    judge_execution(lab)
    assert len(lab.bucket.read(report_html_key(EXECUTION))) > 10_000
    document: dict[str, Any] = lab.bucket.read_json(report_data_key(EXECUTION))
    return document


if __name__ == "__main__":
    main(Path(sys.argv[1]))
