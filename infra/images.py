"""The training images of a lab, which the person's account builds at deployment.

The lab's stack has the repositories, the CPU image and the function that starts builds. The images
for accelerators are in a stack of their own: if one of them can't be built, the lab works without
it. Each build writes the address of its image to an SSM parameter, which PlanSuite reads, so
neither stack imports a value of the other. Names are given by ``ImageStore``: an image without
a repository there fails synthesis.
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
QUEUE_MINUTES = 5
BUILD_MINUTES = 45
ANSWER_MINUTES = 60
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

    BuildImage answers when CodeBuild's event tells the end of a build, because a build may end
    before its commands.
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
        name = lab_stack_name(lab)
        self.lab = lab
        self.function_name = f"{name}-build-image"
        self.repository_names = {image: f"{name}/{image.value}" for image in wanted}
        for image, repository_name in self.repository_names.items():
            self._repository(image, repository_name)
        self._build_image(code, dead_letters)

    def _repository(self, image: Image, name: str) -> None:
        ecr.Repository(
            self,
            f"{image.capitalize()}Repository",
            repository_name=name,
            image_tag_mutability=ecr.TagMutability.IMMUTABLE,
            image_scan_on_push=True,
            lifecycle_rules=[ecr.LifecycleRule(max_image_count=KEPT_IMAGES)],
            removal_policy=cdk.RemovalPolicy.DESTROY,
            empty_on_delete=True,
        )

    def _build_image(self, code: lambda_.Code, dead_letters: sqs.IQueue) -> None:
        """The function BuildImage, and the rule of the events that it answers by."""
        stack = cdk.Stack.of(self)
        projects = [_project_name(self.lab, image) for image in Image]
        project_arns = [arn(stack, "codebuild", f"project/{name}") for name in projects]
        build_image = LabFunction(
            self,
            "BuildImage",
            function_name=self.function_name,
            code=code,
            environment={"LAB": self.lab},
            grants=[Grant(actions=["codebuild:StartBuild"], resources=project_arns)],
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
                    "project-name": projects,
                    "build-status": events.Match.anything_but("IN_PROGRESS"),
                },
            ),
            targets=[targets.LambdaFunction(build_image.function, dead_letter_queue=dead_letters)],
        )


class ImageBuild(Construct):
    """The build of one image, a CodeBuild project that runs once at each deployment."""

    def __init__(
        self, scope: Construct, construct_id: str, *, store: ImageStore, image: Image
    ) -> None:
        super().__init__(scope, construct_id)
        repository = ecr.Repository.from_repository_name(
            self, "Repository", store.repository_names[image]
        )
        uri = repository.repository_uri_for_tag(image_tag(image))
        project = self._project(store.lab, image, uri)
        repository.grant_pull_push(project)
        ecr.PublicGalleryAuthorizationToken.grant_read(project)
        self.build = cdk.CustomResource(
            self,
            "Build",
            resource_type="Custom::TraindynoImage",
            service_token=arn(cdk.Stack.of(self), "lambda", f"function:{store.function_name}"),
            service_timeout=cdk.Duration.minutes(ANSWER_MINUTES),
            properties={"Project": project.project_name, "Address": uri},
        )
        self.build.node.add_dependency(project)
        address = ssm.StringParameter(
            self,
            "Address",
            parameter_name=image_parameter(store.lab, image.value),
            string_value=uri,
        )
        address.node.add_dependency(self.build)
        _acknowledge(project)

    def _project(self, lab: str, image: Image, uri: str) -> codebuild.Project:
        """The project that builds the image and pushes it to the address ``uri``."""
        source = s3_assets.Asset(
            self, "Source", path=str(REPO_ROOT / FOLDER), exclude=_other_folders(image)
        )
        variables = {"IMAGE": uri, "DOCKERFILE": f"{image}/Dockerfile"}
        return codebuild.Project(
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


def image_tag(image: Image) -> str:
    """The hash of what the image is built from."""
    path = str(REPO_ROOT / FOLDER)
    return cdk.FileSystem.fingerprint(path, exclude=_other_folders(image))


def _other_folders(image: Image) -> list[str]:
    """The folders of the other images, which the hash of this one leaves out.

    A change in them must not build this image again. Files outside of all folders are shared.
    """
    return [other.value for other in Image if other is not image]


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
    policy = project.node.find_child("Role").node.find_child("DefaultPolicy").node.default_child
    assert isinstance(policy, cdk.CfnResource), "the CDK's grants are in this policy"
    skipped = {"id": "CKV_AWS_107", "comment": "A token to log in with has no resource."}
    policy.add_metadata("checkov", {"skip": [skipped]})


class LabImages(cdk.Stack):
    """The images for accelerators, built one after another."""

    def __init__(self, scope: Construct, construct_id: str, *, store: ImageStore) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=images_stack_name(store.lab),
            description="Images of a Traindyno lab",
        )
        previous: Construct | None = None
        for image in store.repository_names:
            if image is Image.CPU:
                continue
            built = ImageBuild(self, image.capitalize(), store=store, image=image)
            if previous:
                built.build.node.add_dependency(previous)
            previous = built.build


def _project_name(lab: str, image: Image) -> str:
    return f"{lab_stack_name(lab)}-image-{image.value}"
