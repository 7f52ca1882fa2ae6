"""State RemoveEndpoint: delete the resources of a deployment that failed, or whose transform job has ended."""

import time
from typing import Any

from traindyno.lab.environment import BucketEnvironment, read_environment
from traindyno.lab.services import connect
from traindyno.lab.serving.remove_endpoint import remove_endpoint
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> None:
    """``event`` holds the deployment's name, and the failure if there was one."""
    environment, name = read_environment(BucketEnvironment), event["name"]
    message = event.get("failure", {}).get("Cause")
    with use_case("RemoveEndpoint", deployment=name) as line:
        removed = remove_endpoint(name, services=connect(environment), now=time.time(), message=message)
        line.note(removed=int(removed))
