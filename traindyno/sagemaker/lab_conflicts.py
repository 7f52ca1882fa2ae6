"""The requests of a suite that this lab's jobs can't meet, found before any job is submitted."""

from collections.abc import Iterable, Iterator

from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.lab_names import DEFAULT_LAB, images_stack_name
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.choices import InputMode, Task
from traindyno.core.suite.suite import Cell, Suite
from traindyno.sagemaker.images import image_kind, unavailable_images
from traindyno.sagemaker.job_settings import JobSettings


def find_conflicts(suite: Suite, cells: Iterable[Cell], settings: JobSettings) -> Iterator[str]:
    """One sentence for each conflict, with what is accepted."""
    workload, jobs = suite.workload, settings.jobs
    secret = workload.hub_token_secret
    if secret and secret not in jobs.hub_token_secrets:
        allowed = ", ".join(jobs.hub_token_secrets) or "none"
        yield (
            f"workload.hub_token_secret: this lab's jobs may not read {secret} (they may read: {allowed}):"
            " add it to hub_token_secrets in labs/LAB.toml, and deploy the lab again"
        )
    if jobs.isolates_network:  # a container reads its channels and nothing else
        reason = "this lab's containers have no network. Expected"
        parts = {"model": workload.model, "tokenizer": workload.tokenizer, "dataset": workload.dataset}
        for name, part in parts.items():
            if part is not None and part.path is not None and not is_s3_uri(part.path):
                yield f"workload.{name}.path: got {part.path}: {reason} an S3 prefix"
        if workload.dataset is not None and workload.dataset.input_mode is InputMode.STREAM:
            modes = f"{InputMode.FILE} or {InputMode.FAST_FILE}"
            yield f"workload.dataset.input_mode: got stream: {reason} {modes}"
    cells = tuple(cells)
    yield from _image_conflicts(suite, cells, settings)
    yield from unavailable_images(cells, workload, settings.region)


def _image_conflicts(suite: Suite, cells: Iterable[Cell], settings: JobSettings) -> Iterator[str]:
    """A lab without images only simulates. Each other has one for CPUs; those for accelerators are built later."""
    if "none" not in settings.images:
        return
    script, stack = suite.workload.task is Task.SCRIPT, images_stack_name(settings.lab)
    command = "cdk deploy --all" + (f" -c lab={settings.lab}" if settings.lab != DEFAULT_LAB else "")
    plain = [cell.settings for cell in cells if not (cell.settings.image or suite.workload.image)]
    needed = {
        (each.instance, image_kind(each, found)) for each in plain if (found := find_instance_type(each.instance))
    }
    missing = {"gpu": f"GPUs: build it, in stack {stack}, with: {command}"}
    if not script:
        missing["neuron"] = f"Trainium: set neuron = true in labs/{settings.lab}.toml, and build it with: {command}"
    for name, kind in sorted(needed):
        if kind in missing.keys() - settings.images.keys():
            yield f"{name}: this lab has no image for {missing[kind]}; or set workload.image"
