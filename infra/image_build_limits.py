"""What deploy-time-build decides by itself: given a bigger machine, logs that expire, and reasons for the rules."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import IConstruct

from infra.acknowledgements import acknowledge

# The base image alone takes more than the smallest build machine's disk once it is unpacked and exported.
COMPUTE_TYPE = "BUILD_GENERAL1_LARGE"
MADE_BY = "deploy-time-build makes this and offers no setting for it"
PARTITION, REGION, ACCOUNT = "<AWS::Partition>", "<AWS::Region>", "<AWS::AccountId>"


def settle_builds(stack: cdk.Stack, builder: iam.IGrantable) -> None:
    for child in stack.node.children:
        if child.node.id.startswith("DeployTimeBuildCustomResourceHandler"):
            _settle_trigger(child)
        elif child.node.id.startswith("ContainerImageBuild"):
            _settle_project(child, builder)


def _settle_trigger(function: IConstruct) -> None:
    policy = f"Policy::arn:{PARTITION}:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
    acknowledge(function, f"AwsSolutions-IAM4[{policy}]", f"{MADE_BY}; the policy allows writing logs only.")
    acknowledge(function, "AwsSolutions-L1", f"{MADE_BY}; it runs once per image and deployment.")
    _resource(function).add_property_override("LoggingConfig.LogGroup", _log_group(function).log_group_name)


def _settle_project(project: IConstruct, builder: iam.IGrantable) -> None:
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
        "IAM5[Resource::*]": f"{MADE_BY}; ecr:GetAuthorizationToken knows no resources.",
        **{
            f"IAM5[Action::s3:{action}*]": f"{MADE_BY}; it reads the image's folder from the CDK's asset bucket."
            for action in ("GetBucket", "GetObject", "List")
        },
        f"IAM5[Resource::arn:{PARTITION}:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{REGION}/*]": (
            f"{MADE_BY}; the bucket holds this account's own CDK assets."
        ),
        "CB4": f"{MADE_BY}; the build has no artifacts, and its image goes to a repository that ECR encrypts.",
    }
    for finding, reason in reasons.items():
        acknowledge(project, f"AwsSolutions-{finding}", reason)
    resource.add_property_override("Environment.ComputeType", COMPUTE_TYPE)
    log_group = _log_group(project)
    resource.add_property_override("LogsConfig.CloudWatchLogs.Status", "ENABLED")
    resource.add_property_override("LogsConfig.CloudWatchLogs.GroupName", log_group.log_group_name)
    log_group.grant_write(builder)


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
