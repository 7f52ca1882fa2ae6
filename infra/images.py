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
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from infra.lab_function import LabFunction
from infra.lambda_source import REPO_ROOT
from infra.permissions import Grant, acknowledge, arn
from traindyno.core.lab_names import image_parameter, images_stack_name, lab_stack_name

FOLDER = "images"
# An execution takes up to 28 days and keeps the image that it was planned with. Only a deployment
# that changes an image adds one, and versions on the same base share its layers.
KEPT_IMAGES = 30
# A build that ends before its commands is started once more: two waits for a machine and one build
# fit into CloudFormation's hour.
QUEUE_MINUTES, BUILD_MINUTES, ANSWER_MINUTES = 5, 45, 60
# BuildImage repeats denied requests for a minute.
START_SECONDS = 120
LOGIN = 'aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"'
# Without it, the limit of the public registry is shared with everybody behind the same address.
LOGIN_FOR_BASES = (
    "aws ecr-public get-login-password --region us-east-1 | "
    "docker login --username AWS --password-stdin public.ecr.aws"
)
# SageMaker takes no image with a provenance.
BUILD = (
    'docker buildx build --load --provenance=false --file "$DOCKERFILE" --tag "$IMAGE" . '
    '&& docker push "$IMAGE"'
)
# A rollback asks for a tag that exists and can't be pushed again.
BUILD_ONCE = (
    f'docker manifest inspect "$IMAGE" > /dev/null 2>&1 || ({BUILD}) || (sleep 30 && {BUILD})'
)


class Image(StrEnum):
    """A folder of images/, in the order of their builds.

    ``neuron`` is built only if the context asks for it.
    """

    CPU = "cpu"
    EFA = "efa"
    NEURON = "neuron"


class ImageStore(Construct):
    """The repositories, and BuildImage, which answers the custom resources of both stacks.

    CodeBuild's event of a build's end is what it answers by: a build may end before its commands.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        code: lambda_.Code,
        wanted: Iterable[Image],
        dead_letters: sqs.IQueue,
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
        build_image = LabFunction(
            self,
            "BuildImage",
            function_name=_function_name(lab),
            code=code,
            environment={"LAB": lab},
            grants=[Grant(actions=["codebuild:StartBuild"], resources=projects)],
            timeout=cdk.Duration.seconds(START_SECONDS),
            memory_mib=512,
            dead_letters=dead_letters,
        )
        events.Rule(
            self,
            "BuildEnded",
            event_pattern=events.EventPattern(
                source=["aws.codebuild"],
                detail_type=["CodeBuild Build State Change"],
                detail={
                    "project-name": [_project_name(lab, image) for image in Image],
                    "build-status": events.Match.anything_but("IN_PROGRESS"),
                },
            ),
            targets=[targets.LambdaFunction(build_image.function, dead_letter_queue=dead_letters)],
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
                compute_type=codebuild.ComputeType.MEDIUM,
                privileged=True,
            ),
            environment_variables={
                name: codebuild.BuildEnvironmentVariable(value=value)
                for name, value in variables.items()
            },
            build_spec=codebuild.BuildSpec.from_object(
                {
                    "version": "0.2",
                    "phases": {"build": {"commands": [LOGIN, LOGIN_FOR_BASES, BUILD_ONCE]}},
                }
            ),
            timeout=cdk.Duration.minutes(BUILD_MINUTES),
            queued_timeout=cdk.Duration.minutes(QUEUE_MINUTES),
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
        ecr.PublicGalleryAuthorizationToken.grant_read(project)
        self.build = cdk.CustomResource(
            self,
            "Build",
            resource_type="Custom::TraindynoImage",
            service_token=arn(stack, "lambda", f"function:{_function_name(lab)}"),
            service_timeout=cdk.Duration.minutes(ANSWER_MINUTES),
            properties={"Project": project.project_name, "Address": uri},
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
            "The logins to ECR and its public gallery do not support resource-level permissions."
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
