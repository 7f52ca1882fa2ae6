"""Event: an endpoint or a transform job has changed. Records the result for its deployment."""

import time
from typing import Any

from traindyno.lab.environment import BucketEnvironment, read_environment
from traindyno.lab.services import connect
from traindyno.lab.serving.finish_deployment import finish_deployment
from traindyno.lab.use_case import use_case
from traindyno.sagemaker.serving.serving_description import deployment_name_in


def handle(event: dict[str, Any], _context: object) -> None:
    environment, name = read_environment(BucketEnvironment), deployment_name_in(event)
    with use_case("FinishDeployment", deployment=name) as line:
        status = finish_deployment(name, services=connect(environment), now=time.time())
        line.note(status=status)
