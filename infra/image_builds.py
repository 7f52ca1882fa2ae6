"""CodeBuild settings that deploy-time-build has no property for: build machine, time limits, logs, rule exceptions."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from infra.acknowledgements import acknowledge_all

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
