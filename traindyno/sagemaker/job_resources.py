"""The instances of a job, and how long it may wait and run."""

from typing import Any

from traindyno.core.instances.instance_types import InstanceType
from traindyno.core.suite.fallback_cells import accepted_types
from traindyno.core.suite.suite import Purchase, Run, Suite


def build_resources(run: Run, suite: Suite, volume_size_gb: int, *, is_placed: bool = False) -> dict[str, Any]:
    """``is_placed``: an earlier attempt has run on this type already, so that no other will do."""
    settings = run.cell.settings
    if settings.instance in suite.instance_preferences and not is_placed:
        return {
            "InstancePreferences": [_preference(name, suite) for name in accepted_types(suite, settings.instance)],
            "InstanceCount": settings.instance_count,
            "VolumeSizeInGB": volume_size_gb,
        }
    resources: dict[str, Any] = {
        "InstanceType": settings.instance,
        "InstanceCount": settings.instance_count,
        "VolumeSizeInGB": volume_size_gb,
    }
    if suite.warm_pool_seconds:
        resources["KeepAlivePeriodInSeconds"] = suite.warm_pool_seconds
    if settings.instance in suite.training_plans:
        resources["TrainingPlanArn"] = suite.training_plans[settings.instance]
    return resources


def _preference(name: str, suite: Suite) -> dict[str, Any]:
    plan = suite.training_plans.get(name)
    return {"InstanceType": name, **({"TrainingPlanArns": [plan]} if plan else {})}


def build_stopping_condition(suite: Suite, instance_type: InstanceType) -> dict[str, int]:
    """Waiting is bounded by SageMaker itself: for spot with the run, on demand for AWS's accelerators only."""
    limits = suite.limits
    condition = {"MaxRuntimeInSeconds": limits.max_job_seconds}
    if suite.purchase is Purchase.SPOT:
        condition["MaxWaitTimeInSeconds"] = limits.max_job_seconds + limits.max_pending_seconds
    elif instance_type.has_accelerator and not instance_type.is_local:
        condition["MaxPendingTimeInSeconds"] = limits.max_pending_seconds
    return condition
