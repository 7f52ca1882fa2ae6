"""Called by `traindyno deploy`: create the endpoint of a trained model."""

import time
from typing import Any

from traindyno.aws.endpoints import DeploymentRefused
from traindyno.core.errors import DocumentInvalid, NextAttempt
from traindyno.core.serving.deployment import ModelNotServable
from traindyno.lab.environment import read_environment
from traindyno.lab.serving.deploy_model import deploy_model
from traindyno.lab.serving.services import ServingEnvironment, open_serving
from traindyno.lab.use_case import use_case
from traindyno.sagemaker.images import ImageUnavailable


def handle(event: dict[str, Any], _context: object) -> dict[str, str]:
    """``event`` is the deployment; the answer holds ``refused`` where nothing is served."""
    environment = read_environment(ServingEnvironment)
    with use_case("DeployModel", deployment=str(event.get("name"))) as line:
        try:
            deploy_model(
                event,
                serving=open_serving(environment),
                settings=environment.settings,
                clock=time.time,
            )
        except (DocumentInvalid, ModelNotServable, DeploymentRefused, ImageUnavailable, NextAttempt) as error:
            line.note(refused=type(error).__name__)
            return {"refused": str(error)}
    return {}
