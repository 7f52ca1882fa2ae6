"""The training images of a lab: their repositories, and their builds in the person's account at
deployment.

The lab's stack has the repositories, the CPU image and the function that starts builds. The images
for accelerators are in a stack of their own: if one of them can't be built, the lab works without
it. Each build writes the address of its image to an SSM parameter, which PlanSuite reads, so
neither stack imports a value of the other.
"""

from collections.abc import Iterable
from enum import StrEnum

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from infra.lab_function import LabFunction
from infra.lab_grants import without_resources
from infra.lambda_source import REPO_ROOT
from infra.permissions import Grant, acknowledge, arn
from traindyno.core.lab_names import image_parameter, images_stack_name, lab_stack_name

FOLDER = "images"
# An execution takes up to 28 days and keeps the image that it was planned with. Only a deployment
# that changes an image adds one, and versions on the same base share its layers.
KEPT_IMAGES = 30
# A command that reaches its limit fails, and the build answers CloudFormation with a link to its
# log. A build that reaches the project's limit answers nothing, and CloudFormation waits until its
# own limit of one hour.
COMMAND_MINUTES, PROJECT_MINUTES, ANSWER_MINUTES = 45, 55, 60
# BuildImage repeats denied requests for two minutes.
START_SECONDS = 180
QUOTA_ACTIONS = ("GetServiceQuota", "ListServiceQuotas", "ListAWSDefaultServiceQuotas")
LOGIN = 'aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"'
# A rollback asks for a tag that exists and can't be pushed again. SageMaker takes no image with a
# provenance.
BUILD = (
    'docker manifest inspect "$IMAGE" > /dev/null 2>&1 || (timeout {minutes}m docker buildx build '
    '--load --provenance=false --file "$DOCKERFILE" --tag "$IMAGE" . && docker push "$IMAGE")'
)
STATUS = 'if [ "$CODEBUILD_BUILD_SUCCEEDING" = 1 ]; then STATUS=SUCCESS; else STATUS=FAILED; fi'
ANSWER = (
    'printf \'{"Status": "%s", "Reason": "the log of the build: %s", "PhysicalResourceId": "%s", '
    '"StackId": "%s", "RequestId": "%s", "LogicalResourceId": "%s"}\' "$STATUS" '
    '"$CODEBUILD_BUILD_URL" "$LOGICAL_ID" "$STACK_ID" "$REQUEST_ID" "$LOGICAL_ID" > answer.json'
)
SEND = (
    'curl --fail --silent --retry 5 --request PUT --header "Content-Type:" --data @answer.json '
    '"$RESPONSE_URL"'
)


class Image(StrEnum):
    """A folder of images/, in the order of their builds.

    ``neuron`` is built only if the context asks for it.
    """

    CPU = "cpu"
    EFA = "efa"
    NEURON = "neuron"

    @property
    def compute_type(self) -> codebuild.ComputeType:
        """An image for accelerators takes more than a smaller machine's disk once it is unpacked
        and exported.
        """
        return codebuild.ComputeType.MEDIUM if self is Image.CPU else codebuild.ComputeType.LARGE


class ImageStore(Construct):
    """The repositories, and BuildImage, which answers the custom resources of both stacks."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        code: lambda_.Code,
        wanted: Iterable[Image],
    ) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        for image in wanted:
            ecr.Repository(
                self,
                f"{image.capitalize()}Repository",
                repository_name=_repository_name(lab, image),
                image_tag_mutability=ecr.TagMutability.IMMUTABLE,
                image_scan_on_push=True,
                lifecycle_rules=[ecr.LifecycleRule(max_image_count=KEPT_IMAGES)],
                removal_policy=cdk.RemovalPolicy.DESTROY,
                empty_on_delete=True,
            )
        projects = [
            arn(stack, "codebuild", f"project/{_project_name(lab, image)}") for image in Image
        ]
        LabFunction(
            self,
            "BuildImage",
            function_name=_function_name(lab),
            code=code,
            environment={"LAB": lab},
            grants=[
                without_resources(*(f"servicequotas:{action}" for action in QUOTA_ACTIONS)),
                Grant(actions=["codebuild:StartBuild"], resources=projects),
            ],
            timeout=cdk.Duration.seconds(START_SECONDS),
            memory_mib=512,
        )


class ImageBuild(Construct):
    def __init__(self, scope: Construct, construct_id: str, *, lab: str, image: Image) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        repository = ecr.Repository.from_repository_name(
            self, "Repository", _repository_name(lab, image)
        )
        # The images share files; a change of another image's own files must not build this one
        # again.
        others = [other.value for other in Image if other is not image]
        source = s3_assets.Asset(self, "Source", path=str(REPO_ROOT / FOLDER), exclude=others)
        uri = repository.repository_uri_for_tag(source.asset_hash)
        variables = {"IMAGE": uri, "DOCKERFILE": f"{image}/Dockerfile"}
        project = codebuild.Project(
            self,
            "Project",
            project_name=_project_name(lab, image),
            source=codebuild.Source.s3(bucket=source.bucket, path=source.s3_object_key),
            environment=codebuild.BuildEnvironment(
                build_image=codebuild.LinuxBuildImage.STANDARD_7_0,
                compute_type=image.compute_type,
                privileged=True,
            ),
            environment_variables={
                name: codebuild.BuildEnvironmentVariable(value=value)
                for name, value in variables.items()
            },
            build_spec=codebuild.BuildSpec.from_object(
                {
                    "version": "0.2",
                    "phases": {
                        "build": {"commands": [LOGIN, BUILD.format(minutes=COMMAND_MINUTES)]},
                        "post_build": {"commands": [STATUS, ANSWER, SEND]},
                    },
                }
            ),
            timeout=cdk.Duration.minutes(PROJECT_MINUTES),
            logging=codebuild.LoggingOptions(
                cloud_watch=codebuild.CloudWatchLoggingOptions(
                    # It stays when a failed deployment is rolled back; its events expire.
                    log_group=logs.LogGroup(
                        self,
                        "Logs",
                        retention=logs.RetentionDays.ONE_MONTH,
                        removal_policy=cdk.RemovalPolicy.RETAIN,
                    )
                )
            ),
            grant_report_group_permissions=False,
        )
        repository.grant_pull_push(project)
        self.build = cdk.CustomResource(
            self,
            "Build",
            resource_type="Custom::TraindynoImage",
            service_token=arn(stack, "lambda", f"function:{_function_name(lab)}"),
            service_timeout=cdk.Duration.minutes(ANSWER_MINUTES),
            properties={
                "Project": project.project_name,
                "Size": image.compute_type.name.title(),
                "Address": uri,
            },
        )
        self.build.node.add_dependency(project)
        address = ssm.StringParameter(
            self, "Address", parameter_name=image_parameter(lab, image.value), string_value=uri
        )
        address.node.add_dependency(self.build)
        _acknowledge(project)


def _acknowledge(project: codebuild.Project) -> None:
    name = cdk.Stack.of(project).resolve(project.project_name)
    account = "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>"
    group = f"{account}:log-group:/aws/codebuild/<{name['Ref']}>:*"
    reasons = {
        f"IAM5[Resource::{group}]": (
            "The CDK's grant: CodeBuild names a stream per build in the project's group."
        ),
        "IAM5[Resource::*]": (
            "ecr:GetAuthorizationToken does not support resource-level permissions."
        ),
        **{
            f"IAM5[Action::s3:{action}*]": (
                "The CDK's grant: the build reads the image's folder from the asset bucket."
            )
            for action in ("GetBucket", "GetObject", "List")
        },
        "CB3": "Docker builds the image, which needs the privileged mode.",
        "CB4": "The build has no artifacts, and its image goes to a repository that ECR encrypts.",
    }
    acknowledge(project, {f"AwsSolutions-{finding}": reason for finding, reason in reasons.items()})


class LabImages(cdk.Stack):
    """The images for accelerators, built one after another. ``lab`` has their repositories."""

    def __init__(
        self, scope: Construct, construct_id: str, *, lab: str, wanted: Iterable[Image]
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=images_stack_name(lab),
            description="Images of a Traindyno lab",
        )
        previous: Construct | None = None
        for image in wanted:
            built = ImageBuild(self, image.capitalize(), lab=lab, image=image)
            if previous:
                built.build.node.add_dependency(previous)
            previous = built.build


def _repository_name(lab: str, image: Image) -> str:
    return f"{lab_stack_name(lab)}/{image.value}"


def _project_name(lab: str, image: Image) -> str:
    return f"{lab_stack_name(lab)}-image-{image.value}"


def _function_name(lab: str) -> str:
    return f"{lab_stack_name(lab)}-build-image"
