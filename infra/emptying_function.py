"""The function that the CDK provides for emptying buckets, with a log that expires and the lab's tag."""

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from constructs import IConstruct

from traindyno.core.lab_names import LAB_TAG

PROVIDER = "Custom::S3AutoDeleteObjectsCustomResourceProvider"


def settle_emptying_function(stack: cdk.Stack, *, lab: str) -> None:
    provider = stack.node.find_child(PROVIDER)
    for name in ("Handler", "Role"):
        _resource(provider, name).add_property_override("Tags", [{"Key": LAB_TAG, "Value": lab}])
    log_group = logs.LogGroup(
        stack, "EmptyingLogs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=cdk.RemovalPolicy.DESTROY
    )
    _resource(provider, "Handler").add_property_override("LoggingConfig.LogGroup", log_group.log_group_name)


def _resource(provider: IConstruct, name: str) -> cdk.CfnResource:
    resource = provider.node.find_child(name)
    assert isinstance(resource, cdk.CfnResource), f"{resource.node.path} is one CloudFormation resource"
    return resource
