"""State CheckEndpoint: compare the answers of a served model with those of its training job."""

import time
from typing import Any

from traindyno.aws.endpoints import InvocationFailed
from traindyno.core.serving.deployment_document import parse_deployment
from traindyno.lab.environment import BucketEnvironment, read_environment
from traindyno.lab.services import connect
from traindyno.lab.serving.check_endpoint import AnswersDiffer, check_endpoint
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """``event`` is the deployment; the answer holds ``refused`` where the model does not pass."""
    environment = read_environment(BucketEnvironment)
    with use_case("CheckEndpoint", deployment=str(event.get("name"))) as line:
        deployment = parse_deployment(event, lab=environment.lab)
        try:
            services = connect(environment)
            row = check_endpoint(
                deployment, services=services, clock=time.perf_counter, sleep=time.sleep, now=time.time()
            )
        except (AnswersDiffer, InvocationFailed) as error:
            line.note(refused=type(error).__name__)
            return {"refused": {"Error": type(error).__name__, "Cause": str(error)[:4000]}}
        line.note(samples=row.checked_samples if row else None)
    return {}
