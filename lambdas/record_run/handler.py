"""State RecordRun: turn what a run left behind into its result."""

import os
from typing import Any

from traindyno.core.suite.runs import parse_run
from traindyno.lab.record_run import failed_ending, record_run, refused_ending
from traindyno.lab.services import connect


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    ending = failed_ending(event["failure"]) if "failure" in event else refused_ending(event["end"])
    services = connect(table=os.environ["TABLE"], bucket=os.environ["BUCKET"])
    record_run(parse_run(event["run"]), ending=ending, services=services)
    return {}
