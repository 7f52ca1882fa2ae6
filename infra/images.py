"""The training images of a lab: repositories, and builds in the person's account at deployment, one after another."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from infra.lab_function import LabFunction
from infra.lab_grants import without_resources
from infra.lambda_source import REPO_ROOT
from infra.permissions import acknowledge_all

# The base image alone takes more than the smallest build machine's disk once it is unpacked and exported.
COMPUTE_TYPE = "BUILD_GENERAL1_LARGE"
MADE_BY = "deploy-time-build makes this and offers no setting for it"
# The buildspec is a JSON document, in which a line break is written as \n.
BROKEN_REASON, MENDED_REASON = "detailed reason: \\nhttps://", "detailed reason: https://"
PARTITION, REGION, ACCOUNT = "<AWS::Partition>", "<AWS::Region>", "<AWS::AccountId>"


# A command that reaches its limit fails, and the build reports the failure to CloudFormation with a link to its log.
# A build that reaches the project's limit reports nothing, and CloudFormation waits until its own limit of one hour.
COMMAND_MINUTES, PROJECT_MINUTES, ANSWER_MINUTES = 45, 55, 60
# The command that deploy-time-build writes for an image without other options.
BUILD_COMMAND = (
    "docker buildx build --file {dockerfile} --output type=docker,name=artifact:$imageTag --provenance=false ."
)


def limit_build_time(build: Construct, *, dockerfile: str) -> cdk.CfnResource:
    """Returns the resource that starts the build."""
    trigger = _resource(build.node.find_child("Resource"))
    command = BUILD_COMMAND.format(dockerfile=dockerfile)
    trigger.add_property_override("buildCommand", f"timeout {COMMAND_MINUTES}m {command}")
    trigger.add_property_override("ServiceTimeout", str(ANSWER_MINUTES * 60))
    return trigger


def configure_builds(stack: cdk.Stack, triggers: Sequence[cdk.CfnResource]) -> None:
    """``triggers`` start builds; each needs the log group to exist before."""
    for child in stack.node.children:
        if isinstance(child, lambda_.Function) and child.node.id.startswith("DeployTimeBuildCustomResourceHandler"):
            _configure_handler(child)
        elif isinstance(child, codebuild.Project):
            _configure_project(child, triggers)


def _configure_handler(function: IConstruct) -> None:
    policy = f"Policy::arn:{PARTITION}:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
    reasons = {
        f"AwsSolutions-IAM4[{policy}]": f"{MADE_BY}; the policy allows writing logs only.",
        "AwsSolutions-L1": f"{MADE_BY}; it runs once per image and deployment.",
    }
    acknowledge_all(function, reasons)
    _resource(function).add_property_override("LoggingConfig.LogGroup", _log_group(function).log_group_name)


def _configure_project(project: codebuild.Project, triggers: Sequence[cdk.CfnResource]) -> None:
    resource = _resource(project)
    name = f"<{cdk.Stack.of(project).resolve(resource.logical_id)}>"
    reasons = {
        f"IAM4[Policy::arn:{PARTITION}:iam::aws:policy/AmazonElasticContainerRegistryPublicReadOnly]": (
            f"{MADE_BY}; the policy allows pulling public images only, such as our bases."
        ),
        f"IAM5[Resource::arn:{PARTITION}:logs:{REGION}:{ACCOUNT}:log-group:/aws/codebuild/{name}:*]": (
            f"{MADE_BY}; CodeBuild names a stream per build in the project's own group."
        ),
        f"IAM5[Resource::arn:{PARTITION}:codebuild:{REGION}:{ACCOUNT}:report-group/{name}-*]": (
            f"{MADE_BY}; CodeBuild names report groups after the project."
        ),
        "IAM5[Resource::*]": f"{MADE_BY}; ecr:GetAuthorizationToken does not support resource-level permissions.",
        **{
            f"IAM5[Action::s3:{action}*]": f"{MADE_BY}; it reads the image's folder from the CDK's asset bucket."
            for action in ("GetBucket", "GetObject", "List")
        },
        f"IAM5[Resource::arn:{PARTITION}:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{REGION}/*]": (
            f"{MADE_BY}; the bucket holds this account's own CDK assets."
        ),
        "CB4": f"{MADE_BY}; the build has no artifacts, and its image goes to a repository that ECR encrypts.",
    }
    acknowledge_all(project, {f"AwsSolutions-{finding}": reason for finding, reason in reasons.items()})
    _mend_answer(resource)
    resource.add_property_override("Environment.ComputeType", COMPUTE_TYPE)
    resource.add_property_override("TimeoutInMinutes", PROJECT_MINUTES)
    log_group = _build_log_group(project)
    for trigger in triggers:
        trigger.node.add_dependency(log_group)


def _mend_answer(project: cdk.CfnResource) -> None:
    """deploy-time-build writes a line break into the text of its answer to CloudFormation; JSON allows none."""
    assert isinstance(project, codebuild.CfnProject)
    buildspec: str = cdk.Stack.of(project).resolve(project.source)["buildSpec"]
    if buildspec.count(BROKEN_REASON) != 1:
        raise ValueError(f"{buildspec} must contain deploy-time-build's text of a failure once")
    project.add_property_override("Source.BuildSpec", buildspec.replace(BROKEN_REASON, MENDED_REASON))


def _build_log_group(project: codebuild.Project) -> logs.LogGroup:
    """The group that CodeBuild writes to by default and that a failure's text links to.

    It stays when a failed deployment is rolled back, and when the lab is destroyed; its events expire.
    """
    return logs.LogGroup(
        cdk.Stack.of(project),
        "ImageBuildLogs",
        log_group_name=f"/aws/codebuild/{project.project_name}",
        retention=logs.RetentionDays.ONE_MONTH,
        removal_policy=cdk.RemovalPolicy.RETAIN,
    )


def _resource(construct: IConstruct) -> cdk.CfnResource:
    resource = construct.node.default_child
    assert isinstance(resource, cdk.CfnResource), f"{construct.node.path} is one CloudFormation resource"
    return resource


def _log_group(scope: IConstruct) -> logs.LogGroup:
    return logs.LogGroup(
        cdk.Stack.of(scope),
        f"{scope.node.id}Logs",
        retention=logs.RetentionDays.ONE_MONTH,
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )


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
