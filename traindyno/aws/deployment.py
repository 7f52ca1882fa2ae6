"""The outputs of a lab's CloudFormation stack."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import LabOutput, lab_stack_name
from traindyno.sagemaker.job_settings import read_lab_jobs
from traindyno.sagemaker.serving import ServingSettings

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackTypeDef


class LabNotDeployed(TraindynoError):
    """There is no such lab in the account and region of the credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    lab: str
    state_machine_arn: str
    bucket: str
    table: str
    training_role_arn: str
    topic_arn: str
    source_s3_uri: str
    serving: ServingSettings


def find_deployment(cloudformation: "CloudFormationClient", lab: str) -> Deployment:
    stack_name = lab_stack_name(lab)
    stack = _find_stack(cloudformation, lab)
    if stack is None:
        region = cloudformation.meta.region_name
        raise LabNotDeployed(
            f"lab {lab}: no stack {stack_name} in {region}; deploy it with: cdk deploy --all -c "
            f"lab={lab} --region {region}"
        )
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    missing = sorted(output for output in LabOutput if output not in outputs)
    if missing:
        status = stack["StackStatus"]
        then = "wait for its end" if status == "CREATE_IN_PROGRESS" else "deploy it again"
        raise LabNotDeployed(
            f"lab {lab}: stack {stack_name} is {status} and lacks {', '.join(missing)}; {then}"
        )
    return Deployment(
        lab=lab,
        state_machine_arn=outputs[LabOutput.STATE_MACHINE_ARN],
        bucket=outputs[LabOutput.BUCKET],
        table=outputs[LabOutput.TABLE],
        training_role_arn=outputs[LabOutput.TRAINING_ROLE_ARN],
        topic_arn=outputs[LabOutput.TOPIC_ARN],
        source_s3_uri=outputs[LabOutput.SOURCE_S3_URI],
        serving=ServingSettings(
            region=cloudformation.meta.region_name,
            role_arn=outputs[LabOutput.SERVING_ROLE_ARN],
            bucket=outputs[LabOutput.BUCKET],
            lab=lab,
            jobs=read_lab_jobs(outputs[LabOutput.LAB_JOBS]),
        ),
    )


def is_rolled_back(cloudformation: "CloudFormationClient", stack_id: str) -> bool:
    (stack,) = cloudformation.describe_stacks(StackName=stack_id)["Stacks"]
    return "ROLLBACK" in stack["StackStatus"]


def _find_stack(cloudformation: "CloudFormationClient", lab: str) -> "StackTypeDef | None":
    try:
        (stack,) = cloudformation.describe_stacks(StackName=lab_stack_name(lab))["Stacks"]
    except ClientError as error:
        if error_code(error) != "ValidationError":
            raise
        return None
    return stack
