"""Which image runs a cell: its own, the workload's, the lab's, or AWS's; and what of a suite
conflicts with the lab.
"""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from traindyno.core.errors import TraindynoError
from traindyno.core.instances.devices import AcceleratorKind
from traindyno.core.instances.instance_types import (
    InstanceType,
    find_instance_type,
)
from traindyno.core.lab_names import DEFAULT_LAB, images_stack_name
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Workload
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.aws_images import (
    SMP_V2_REPOSITORY,
    VERSIONED_REPOSITORIES,
    pytorch_version,
)
from traindyno.core.suite.choices import TRAITS, Compiler, InputMode, Task
from traindyno.core.suite.suite import Suite
from traindyno.sagemaker.job_settings import JobSettings

LOCAL_IMAGE = "local"
LOCAL_XLA_IMAGE = "local-xla"


class ImageUnavailable(TraindynoError):
    """AWS publishes no such image in the region."""


def select_image_uri(settings: Settings, workload: Workload, job_settings: JobSettings) -> str:
    """The cell's own image, else the workload's, else the lab's for this kind of instance, else
    AWS's.
    """
    instance_type = known_type(settings.instance)
    if instance_type.is_local:
        return LOCAL_XLA_IMAGE if settings.compiler is Compiler.XLA else LOCAL_IMAGE
    stock = image_kind(settings, instance_type)
    chosen = settings.image or workload.image
    if chosen is not None:
        return stock_image_uri(chosen, job_settings.region) if is_aws_image_name(chosen) else chosen
    # AWS's CPU image has none of the built-in tasks' packages.
    own = (
        None if stock == "none" and workload.task is Task.SCRIPT else job_settings.images.get(stock)
    )
    return own or stock_image_uri(default_image(stock), job_settings.region)


def known_type(name: str) -> InstanceType:
    instance_type = find_instance_type(name)
    assert instance_type is not None, "a parsed suite names known instance types only"
    return instance_type


def default_image(kind: str) -> str:
    """AWS's image, as ``repository:tag``, for cells of this ``image_kind``."""
    name: str = _data("stock_images.json")["images"][kind]
    return name


def is_aws_image_name(image: str) -> bool:
    """Whether this is ``repository:tag`` of one of AWS's Deep Learning Containers, whose account
    follows from the region.
    """
    repository, _, tag = image.partition(":")
    return bool(tag) and repository in _data("stock_images.json")["repositories"]


def unavailable_images(suite: Suite, region: str) -> tuple[str, ...]:
    """Why AWS images that cells name are not available in the region; empty if all are."""
    names = {cell.settings.image or suite.workload.image for cell in suite.cells}
    problems = []
    for name in sorted(name for name in names if name and is_aws_image_name(name)):
        try:
            stock_image_uri(name, region)
        except ImageUnavailable as error:
            problems.append(str(error))
    return tuple(problems)


def stock_image_uri(name: str, region: str) -> str:
    """The full address of ``repository:tag`` in the account that serves the region."""
    table = _data("image_accounts.json")
    accounts = table[
        SMP_V2_REPOSITORY.replace("-", "_")
        if name.startswith(SMP_V2_REPOSITORY)
        else "deep_learning_containers"
    ]
    if region not in accounts:
        known = ", ".join(sorted(accounts))
        raise ImageUnavailable(
            f"{name} is not published in {region}; regions that have it: {known}; or set an image"
        )
    return f"{accounts[region]}.dkr.ecr.{region}.amazonaws.com/{name}"


def image_kind(settings: Settings, instance_type: InstanceType) -> str:
    if TRAITS[settings.strategy].sagemaker_collectives:
        return "smddp"
    if settings.compiler is Compiler.XLA and instance_type.accelerator_kind is AcceleratorKind.GPU:
        return "training_compiler"
    return instance_type.accelerator_kind.value


def has_framework_version(image_uri: str) -> bool:
    """Whether the SDK would select this image by a framework version; it then turns on the metrics
    time series.
    """
    repository = image_uri.rpartition("/")[2].partition(":")[0]
    return ".dkr.ecr." in image_uri and repository in VERSIONED_REPOSITORIES


def is_smp_v2_image(image_uri: str) -> bool:
    """AWS has separate images for version 2 of its model parallel library; version 1 is in
    PyTorch's images.
    """
    return image_uri.rpartition("/")[2].partition(":")[0] == SMP_V2_REPOSITORY


def framework_version(image_uri: str) -> tuple[int, int, int] | None:
    """PyTorch's version by the tag of an AWS image; None if the image is the user's own."""
    return pytorch_version(image_uri) if has_framework_version(image_uri) else None


@cache
def _data(name: str) -> Any:
    return json.loads(files("traindyno.sagemaker.data").joinpath(name).read_text(encoding="utf-8"))


def find_conflicts(suite: Suite, settings: JobSettings) -> Iterator[str]:
    """One sentence for each conflict, with what is accepted."""
    workload = suite.workload
    jobs = settings.jobs
    secret = workload.hub_token_secret
    if secret and secret not in jobs.hub_token_secrets:
        allowed = ", ".join(jobs.hub_token_secrets) or "none"
        yield (
            f"workload.hub_token_secret: this lab's jobs may not read {secret} (they may read: "
            f"{allowed}): add it to hub_token_secrets in labs/LAB.toml, and deploy the lab again"
        )
    if jobs.isolates_network:  # a container reads its channels and nothing else
        reason = "this lab's containers have no network. Expected"
        parts = {
            "model": workload.model,
            "tokenizer": workload.tokenizer,
            "dataset": workload.dataset,
        }
        for name, part in parts.items():
            if part is not None and part.path is not None and not is_s3_uri(part.path):
                yield f"workload.{name}.path: got {part.path}: {reason} an S3 prefix"
        if workload.dataset is not None and workload.dataset.input_mode is InputMode.STREAM:
            modes = f"{InputMode.FILE} or {InputMode.FAST_FILE}"
            yield f"workload.dataset.input_mode: got stream: {reason} {modes}"
    yield from _image_conflicts(suite, settings)
    yield from unavailable_images(suite, settings.region)


def _image_conflicts(suite: Suite, settings: JobSettings) -> Iterator[str]:
    """A lab without images only simulates.

    Each other lab has one for CPUs; images for accelerators are built later.
    """
    if "none" not in settings.images:
        return
    script = suite.workload.task is Task.SCRIPT
    stack = images_stack_name(settings.lab)
    command = "cdk deploy --all" + (
        f" -c lab={settings.lab}" if settings.lab != DEFAULT_LAB else ""
    )
    plain = [
        cell.settings for cell in suite.cells if not (cell.settings.image or suite.workload.image)
    ]
    needed = {
        (cell_settings.instance, image_kind(cell_settings, instance_type))
        for cell_settings in plain
        if (instance_type := find_instance_type(cell_settings.instance))
    }
    missing = {"gpu": f"GPUs: build it, in stack {stack}, with: {command}"}
    if not script:
        missing["neuron"] = (
            f"Trainium: set neuron = true in labs/{settings.lab}.toml, and build it with: {command}"
        )
    for name, kind in sorted(needed):
        if kind in missing.keys() - settings.images.keys():
            yield (
                f"{name}: this lab has no current image for {missing[kind]}; or set workload.image"
            )
