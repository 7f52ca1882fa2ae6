"""Delete an endpoint or stop a transform job, with its model; what it cost stays in its row."""

from traindyno.core.s3_keys import served_model_key
from traindyno.lab.services import LabServices


def remove_endpoint(name: str, *, services: LabServices, now: float, message: str | None = None) -> bool:
    """False if it was removed before, or never was. Billing ends first. Safe to repeat."""
    row = services.deployments.find(name)
    if row is None or not row.is_open:
        return False
    if row.deployment.is_endpoint:
        services.endpoints.delete_endpoint(name)
    else:
        services.endpoints.stop_transform(name)
    services.endpoints.delete_model(name)
    services.bucket.delete(served_model_key(name))
    return services.deployments.remove(name, now=now, message=message)
