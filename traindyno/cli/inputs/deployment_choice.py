"""The options of `traindyno deploy`, and which of them contradict each other."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from traindyno.api.local_paths import find_local
from traindyno.cli.inputs.also_send import AlsoSendOption
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.option_rules import need
from traindyno.cli.option_values import finite, matching, refused
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.documents.problems import one_of
from traindyno.core.instances.instance_types import close_instance_types
from traindyno.core.s3_keys import S3_SCHEME, is_s3_uri
from traindyno.core.serving.deployment import SERVING_INSTANCE, Hosting, ModelNotServable
from traindyno.core.serving.deployment_document import OWNER, OWNER_RULE, SERVERLESS_MIB
from traindyno.core.serving.lifetime import LONGEST_TRANSFORM_HOURS, MOST_INSTANCES
from traindyno.core.suite.preparation import LOCAL_INSTANCE
from traindyno.sagemaker.serving.serving_request import check_instance_type

DEFAULT_HOURS = 24.0
# The table of instance types lacks those that are newer than it.
INSTANCE = re.compile(r"ml\.[a-z][a-z0-9-]*\.(medium|large|\d*xlarge|metal)|local\.(cpu|gpu)")
SERVERLESS_ONLY = need("concurrency", option="serverless", why="instances have no such limit")


def serving_instance(value: str | None) -> str | None:
    if value is None:
        return None
    if not INSTANCE.fullmatch(value):
        raise refused(value, f"an instance type such as {SERVING_INSTANCE}", close_instance_types(value))
    try:
        check_instance_type(value)
    except ModelNotServable as error:
        raise typer.BadParameter(str(error)) from error
    return value


def serverless_memory(value: int | None) -> int | None:
    if value is not None and value not in SERVERLESS_MIB:
        raise refused(value, f"the MiB of a serverless endpoint: {one_of(map(str, SERVERLESS_MIB))}")
    return value


def requests_place(value: str | None) -> str | None:
    """An S3 prefix with a bucket, or a file or folder of this machine."""
    if value is None:
        return None
    is_there = value != S3_SCHEME if is_s3_uri(value) else bool(value) and find_local(value, Path.cwd()) is not None
    if not is_there:
        raise refused(value, "an S3 prefix such as s3://bucket/requests/, or a file or folder of this machine")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentChoice(LabChoice):
    """The lab, and the options of the deployment."""

    instance: Annotated[
        str | None,
        typer.Option(
            help=f"The instance type; by default {SERVING_INSTANCE}, or {LOCAL_INSTANCE} with --local.",
            callback=serving_instance,
        ),
    ] = None
    count: Annotated[int, typer.Option(min=1, help=f"How many instances, at most {MOST_INSTANCES}.")] = 1
    serverless: Annotated[
        int | None,
        typer.Option(
            metavar="MIB",
            help=f"A serverless endpoint with this memory, instead of instances: {one_of(map(str, SERVERLESS_MIB))}.",
            callback=serverless_memory,
        ),
    ] = None
    concurrency: Annotated[
        int, typer.Option(min=1, max=200, help="Requests that a serverless endpoint answers in parallel.")
    ] = 5
    transform: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX",
            help="A batch transform job over this S3 prefix, file or folder, instead of an endpoint.",
            callback=requests_place,
        ),
    ] = None
    hours: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            callback=finite,
            help="The endpoint is deleted, or the transform job stopped, after this many hours; by default "
            f"{DEFAULT_HOURS:g}. At most {LONGEST_TRANSFORM_HOURS} for a transform job.",
        ),
    ] = None
    max_usd: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            callback=finite,
            help="The lab ends it before it costs more than this many USD, also while this machine is off.",
        ),
    ] = None
    also_send: AlsoSendOption = None
    keep: Annotated[bool, typer.Option("--keep", help="Keep the endpoint until traindyno undeploy.")] = False
    owner: Annotated[
        str | None,
        typer.Option(
            envvar="TRAINDYNO_OWNER",
            help="The tag traindyno:owner; by default your user name.",
            callback=matching(OWNER, OWNER_RULE),
        ),
    ] = None

    def __post_init__(self) -> None:
        """Raises BadParameter for options that contradict each other."""
        is_serverless, is_transform, is_timed = (
            each is not None for each in (self.serverless, self.transform, self.hours)
        )
        has_instances = self.instance is not None or self.count > 1
        for names, is_given in (
            ("--serverless and --transform", is_serverless and is_transform),
            ("--serverless and --instance or --count", is_serverless and has_instances),
            ("--keep and --hours", self.keep and is_timed),
            ("--transform and --keep", is_transform and self.keep),
        ):
            if is_given:
                raise typer.BadParameter(f"{names} can't be combined: give one of them")
        if self.count > MOST_INSTANCES:
            message = f"got {self.count}, expected at most {MOST_INSTANCES}, SageMaker's limit on a transform job"
            raise typer.BadParameter(message, param_hint="--count")
        if is_transform and (self.hours or 0) > LONGEST_TRANSFORM_HOURS:
            message = f"got {self.hours:g}, expected at most {LONGEST_TRANSFORM_HOURS} for a transform job"
            raise typer.BadParameter(message, param_hint="--hours")
        if (self.instance or "").startswith("local.") and not self.local:
            message = f"{self.instance} is an instance type of the local cloud: add --local"
            raise typer.BadParameter(message, param_hint="--instance")
        if self.also_send and not is_transform:
            raise typer.BadParameter("only --transform sends files of this machine", param_hint="--also-send")

    @property
    def hosting(self) -> Hosting:
        if self.transform is not None:
            return Hosting.TRANSFORM
        return Hosting.ENDPOINT if self.serverless is None else Hosting.SERVERLESS

    @property
    def instance_type(self) -> str | None:
        """None for a serverless endpoint, which has no instances."""
        if self.hosting is Hosting.SERVERLESS:
            return None
        return self.instance or (LOCAL_INSTANCE if self.local else SERVING_INSTANCE)

    def expires_at(self, now: float) -> float | None:
        """Epoch seconds; None for a kept endpoint."""
        if self.keep:
            return None
        return now + (self.hours or DEFAULT_HOURS) * SECONDS_PER_HOUR
