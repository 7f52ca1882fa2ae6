"""State DeployModel: create the endpoint or transform job of a trained model; its change answers the waiting task."""

import time
from typing import Any

from traindyno.lab.environment import ServingEnvironment, read_environment
from traindyno.lab.services import connect
from traindyno.lab.serving.deploy_model import deploy_model
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> None:
    """``event`` holds the task's token, and the deployment."""
    environment, deployment = read_environment(ServingEnvironment), event["deployment"]
    with use_case("DeployModel", deployment=str(deployment.get("name"))) as line:
        answered = deploy_model(
            deployment,
            event["token"],
            services=connect(environment),
            settings=environment.settings,
            now=time.time(),
        )
        line.note(answered=answered)
