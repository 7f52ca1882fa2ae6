"""The training images of a lab, built in the person's account at deployment into repositories of their own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_ecr as ecr
from constructs import Construct

from infra.image_build_limits import settle_builds
from infra.lambda_source import REPO_ROOT

if TYPE_CHECKING:
    from deploy_time_build import ContainerImageBuild

IMAGES = ("efa", "neuron")


class ImagesStack(cdk.Stack):
    def __init__(self, scope: Construct, construct_id: str, *, stack_name: str) -> None:
        super().__init__(scope, construct_id, stack_name=stack_name, description="Training images of a Traindyno lab")
        builds = {name: self._build(name) for name in IMAGES}
        self.image_uris: Mapping[str, str] = {name: build.image_uri for name, build in builds.items()}
        settle_builds(self, next(iter(builds.values())).grant_principal)

    def _build(self, name: str) -> "ContainerImageBuild":
        # Imported here: its assembly costs a local synthesis time that only this stack has to pay.
        from deploy_time_build import ContainerImageBuild  # noqa: PLC0415

        return ContainerImageBuild(
            self,
            f"{name.capitalize()}Build",
            directory=str(REPO_ROOT / "images" / name),
            repository=self._repository(name),
        )

    def _repository(self, name: str) -> ecr.Repository:
        return ecr.Repository(
            self,
            f"{name.capitalize()}Repository",
            image_tag_mutability=ecr.TagMutability.IMMUTABLE,
            image_scan_on_push=True,
            lifecycle_rules=[ecr.LifecycleRule(max_image_count=3)],
            removal_policy=cdk.RemovalPolicy.DESTROY,
            empty_on_delete=True,
        )
