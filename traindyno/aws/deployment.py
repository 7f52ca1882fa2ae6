"""The deployed lab: what its stack's outputs say."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.errors import TraindynoError
from traindyno.core.lab import LabOutput, lab_stack_name

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


class LabNotDeployed(TraindynoError):
    """The account and region hold no lab of this name, or one of an older version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    lab: str
    region: str
    state_machine_arn: str
    bucket: str
    table: str


def find_deployment(cloudformation: "CloudFormationClient", lab: str) -> Deployment:
    stack_name, region = lab_stack_name(lab), cloudformation.meta.region_name
    try:
        (stack,) = cloudformation.describe_stacks(StackName=stack_name)["Stacks"]
    except ClientError as error:
        if error_code(error) != "ValidationError":
            raise
        raise LabNotDeployed(
            f"no lab {lab!r} is deployed in {region} (looked for the stack {stack_name}); "
            "deploy one with: cdk deploy --all, or name another with --lab and --region"
        ) from error
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    wanted = (LabOutput.STATE_MACHINE_ARN, LabOutput.BUCKET, LabOutput.TABLE)
    missing = [output for output in wanted if output not in outputs]
    if missing:
        raise LabNotDeployed(f"the stack {stack_name} in {region} has no output {missing[0]}; deploy it again")
    return Deployment(
        lab=lab,
        region=region,
        state_machine_arn=outputs[LabOutput.STATE_MACHINE_ARN],
        bucket=outputs[LabOutput.BUCKET],
        table=outputs[LabOutput.TABLE],
    )
