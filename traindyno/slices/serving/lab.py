"""Whether the runs of a suite leave a model that can be served, and how to serve many requests at
once.
"""

from collections.abc import Iterator

from traindyno.core.jobs.outcome import Outcome
from traindyno.core.s3_keys import saved_model_key
from traindyno.core.serving.deployment import SERVED_TASKS, SERVING_INSTANCE
from traindyno.core.suite.choices import DatasetFormat
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, element


def why_not_servable(suite: Suite) -> str | None:
    """None where ``traindyno deploy`` can serve the models of the suite's runs."""
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
        return (
            "the suite keeps no model; add to it measurement: {save_model: true}, then run it again"
        )
    return None


def start_lines(suite: Suite) -> Iterator[str]:
    reason = why_not_servable(suite)
    if reason is not None:
        yield f"this execution will have no model to deploy: {reason}"


def batch_hint(report: Report) -> Markup | None:
    saved = [each for each in report.results if each.outcome is Outcome.COMPLETED and each.attempts]
    if not saved or not report.suite.measurement.save_model:
        return None
    run = saved[-1].run
    job_name = saved[-1].attempts[-1].job_name
    is_kept = report.suite.limits.chain_jobs
    key = saved_model_key(run.execution_id, run.run_id, job_name, is_kept=is_kept)
    uri = f"s3://BUCKET/{key}"
    call = (
        f'Model(model_data="{uri}", …).transformer(1, "{SERVING_INSTANCE}", '
        '…).transform("s3://…/requests/", …)'
    )
    return element(
        "p", "A batch transform with the SageMaker SDK (docs/serving.md): ", element("code", call)
    )
