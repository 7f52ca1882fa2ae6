"""A run whose model of the Hub is in the lab's bucket reads it from there, like any model in S3."""

from dataclasses import replace

from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.suite.workload import Model, Workload


def with_staged_model(suite: Suite, run: Run) -> Suite:
    if run.model_s3_uri is None:
        return suite
    workload = replace(suite.workload, model=Model(path=run.model_s3_uri))
    if not _needs_hub(workload, run):
        workload = replace(workload, hub_token_secret=None)
    return replace(suite, workload=workload)


def _needs_hub(workload: Workload, run: Run) -> bool:
    """Prepared tokens bring their tokenizer."""
    parts = () if run.tokens else (workload.tokenizer, workload.dataset)
    return any(part is not None and part.path is not None and not is_s3_uri(part.path) for part in parts)
