"""State PlanRound: write the runs that come next, or none when the search is over."""

import os
from typing import Any

from traindyno.aws import clients
from traindyno.lab.plan_round import plan_next_round
from traindyno.store.results_bucket import ResultsBucket


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    bucket = ResultsBucket(clients.s3(), os.environ["BUCKET"])
    return plan_next_round(event["execution_id"], finished_rounds=event["round"], bucket=bucket)
