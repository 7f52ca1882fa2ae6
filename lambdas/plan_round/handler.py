"""State PlanRound: write the next runs, or none when the search has ended."""

from typing import Any

from traindyno.aws import clients
from traindyno.lab.environment import BucketEnvironment, read_environment
from traindyno.lab.plan_round import plan_next_round
from traindyno.lab.use_case import use_case
from traindyno.store.results_bucket import ResultsBucket


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    bucket = ResultsBucket(clients.s3(), read_environment(BucketEnvironment).bucket)
    with use_case("PlanRound", execution=event["execution_id"]) as line:
        planned = plan_next_round(
            event["execution_id"], finished_rounds=event["round"], bucket=bucket
        )
        line.update(round=planned["round"], lanes=len(planned["lanes"]))
    return planned
