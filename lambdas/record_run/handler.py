"""State RecordRun: turn what a run left behind into its result."""

import os
from typing import Any

from traindyno.aws.lab_services import connect
from traindyno.aws.recording import failed_ending, record_run, refused_ending
from traindyno.core.suites.runs import parse_run


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    ending = failed_ending(event["failure"]) if "failure" in event else refused_ending(event["end"])
    services = connect(table=os.environ["TABLE"], bucket=os.environ["BUCKET"])
    record_run(parse_run(event["run"]), ending=ending, services=services)
    return {}
