"""State SubmitRun: start the training job of the next attempt; its end answers the waiting task."""

import time
from typing import Any

from traindyno.core.jobs.job import owner_id, parse_owner
from traindyno.lab.environment import LaunchEnvironment, read_environment
from traindyno.lab.services import connect
from traindyno.lab.submit_run import submit_run
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> None:
    """Submits the job of the event's item, with the task's token.

    The item says what the job is for: a run, several, or a preparation.
    """
    owner = parse_owner(event["item"])
    environment = read_environment(LaunchEnvironment)
    with use_case("SubmitRun", execution=owner.execution_id, run=owner_id(owner)) as line:
        submitted = submit_run(
            owner,
            event["token"],
            services=connect(environment),
            settings=environment.job_settings,
            now=time.time(),
            sleep=time.sleep,
        )
        line.update(job=submitted.job_name, answered=submitted.answered)
