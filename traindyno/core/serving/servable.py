"""Whether the runs of a suite leave a model that can be served."""

from traindyno.core.serving.deployment import SERVED_TASKS
from traindyno.core.suite.choices import DatasetFormat
from traindyno.core.suite.suite import Suite

KEEPS_NO_MODEL = (
    "the suite keeps no model; add to it measurement: {save_model: true}, then run it again"
)


def why_not_servable(suite: Suite) -> str | None:
    """Why ``traindyno deploy`` can't serve the models of the suite's runs, or None."""
    workload = suite.workload
    if workload.task not in SERVED_TASKS:
        served = ", ".join(SERVED_TASKS)
        return (
            f"the inference handler can't serve models of task {workload.task}, expected one of "
            f"{served}"
        )
    if workload.trust_remote_code:
        return (
            "workload.trust_remote_code is true, and an endpoint runs no Python code of a model; "
            "expected false"
        )
    if workload.dataset is not None and workload.dataset.format is DatasetFormat.SYNTHETIC:
        return (
            "synthetic data has no tokenizer, so its models can't be served; expected a dataset "
            "of text"
        )
    if not suite.measurement.save_model:
        return KEEPS_NO_MODEL
    return None
