"""The training images of a lab: repositories, and builds in the person's account at deployment, one after another."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.image_builds import configure_builds, limit_build_time
from infra.lab_function import LabFunction
from infra.lab_grants import without_resources
from infra.lambda_source import REPO_ROOT

if TYPE_CHECKING:
    from deploy_time_build import ContainerImageBuild

FOLDER = "images"
# An execution takes up to 28 days and keeps the image that it was planned with. Only a deployment that changes an image
# adds one, and versions on the same base share its layers.
KEPT_IMAGES = 30
# The check repeats denied requests for a minute.
CHECK_SECONDS, ANSWER_SECONDS = 150, 240
QUOTA_ACTIONS = ("GetServiceQuota", "ListServiceQuotas", "ListAWSDefaultServiceQuotas")


class Image(StrEnum):
    """A folder of images/, in the order of their builds. ``neuron`` is built only if the context asks for it."""

    CPU = "cpu"
    EFA = "efa"
    NEURON = "neuron"


class Images(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, lab: str, code: lambda_.Code, wanted: Iterable[Image]
    ) -> None:
        super().__init__(scope, construct_id)
        previous: Construct = self._quota_check(lab, code)
        uris: dict[str, str] = {}
        triggers = []
        for image in wanted:
            build = self._build(image)
            build.node.add_dependency(previous)
            uris[image.value], previous = build.image_uri, build
            triggers.append(limit_build_time(build, dockerfile=dockerfile(image)))
        self.uris: Mapping[str, str] = uris
        configure_builds(cdk.Stack.of(self), triggers)

    def _quota_check(self, lab: str, code: lambda_.Code) -> cdk.CustomResource:
        check = LabFunction(
            self,
            "CheckBuildQuota",
            code=code,
            environment={"LAB": lab},
            grants=[without_resources(*(f"servicequotas:{action}" for action in QUOTA_ACTIONS))],
            timeout=cdk.Duration.seconds(CHECK_SECONDS),
            memory_mib=512,
        )
        return cdk.CustomResource(
            self,
            "BuildQuota",
            resource_type="Custom::TraindynoBuildQuota",
            service_token=check.function.function_arn,
            service_timeout=cdk.Duration.seconds(ANSWER_SECONDS),
        )

    def _build(self, image: Image) -> "ContainerImageBuild":
        # Imported here, because loading its assembly takes time, and only a lab with images needs it.
        from deploy_time_build import ContainerImageBuild  # noqa: PLC0415

        return ContainerImageBuild(
            self,
            f"{image.capitalize()}Build",
            # The images share files; a change of another image's own files must not build this one again.
            directory=str(REPO_ROOT / FOLDER),
            file=dockerfile(image),
            exclude=[other.value for other in Image if other is not image],
            repository=self._repository(image),
        )

    def _repository(self, image: Image) -> ecr.Repository:
        return ecr.Repository(
            self,
            f"{image.capitalize()}Repository",
            image_tag_mutability=ecr.TagMutability.IMMUTABLE,
            image_scan_on_push=True,
            lifecycle_rules=[ecr.LifecycleRule(max_image_count=KEPT_IMAGES)],
            removal_policy=cdk.RemovalPolicy.DESTROY,
            empty_on_delete=True,
        )


def dockerfile(image: Image) -> str:
    """The path of the image's Dockerfile, relative to the folder of the images."""
    return f"{image}/Dockerfile"
