"""State RecordRun: compute the results of a run, or of a shared job's runs, from the step logs."""

from collections import Counter
from typing import Any

from traindyno.core.jobs.job import owner_id, parse_owner
from traindyno.lab.environment import BucketEnvironment, read_environment
from traindyno.lab.record_run import record_runs, refused_outcome
from traindyno.lab.services import connect
from traindyno.lab.stop_runs import FunctionContext, RequestPace
from traindyno.lab.use_case import use_case

LAST_MILLISECONDS = 60_000


def handle(event: dict[str, Any], context: FunctionContext) -> dict[str, Any]:
    """Records the run or the job of the event.

    The event also has the job's end, or the error that the state machine caught.
    """
    owner = parse_owner(event)
    environment = read_environment(BucketEnvironment)
    pace = RequestPace.of(context, last_milliseconds=LAST_MILLISECONDS)
    with use_case("RecordRun", execution=owner.execution_id, run=owner_id(owner)) as line:
        results = record_runs(
            owner,
            final=refused_outcome(event["end"]),
            services=connect(environment),
            may_go_on=pace.may_go_on,
        )
        outcomes = Counter(result.outcome.value for result in results)
        line.update(outcomes=", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()))
    return {}
