"""State RecordRun: compute a run's result from the step logs of its jobs."""

from typing import Any

from traindyno.core.suite.runs import parse_run
from traindyno.lab.environment import BucketEnvironment, read_environment
from traindyno.lab.record_run import record_run, refused_outcome
from traindyno.lab.services import connect
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """``event`` holds the run, and its job's end or what the state machine caught."""
    final = refused_outcome(event["end"])
    run, environment = parse_run(event["run"]), read_environment(BucketEnvironment)
    with use_case("RecordRun", execution=run.execution_id, run=run.run_id) as line:
        result = record_run(run, final=final, services=connect(environment))
        if result:
            jobs = [attempt.job_name for attempt in result.attempts]
            line.note(outcome=result.outcome.value, job=jobs[-1] if jobs else None)
    return {}
