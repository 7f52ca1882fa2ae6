"""Which IAM actions an operation needs, and on which resources: a short table, from AWS's
authorization reference.

``{Name}`` in a resource is a parameter of the call, ``$NAME`` a variable of the function or of the
lab.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter

EVERYTHING = "*"
OURS = "$REGION:$ACCOUNT"
OBJECT = "arn:aws:s3:::{Object}"
SOURCE = "arn:aws:s3:::{Source}"
BUCKET = "arn:aws:s3:::{Bucket}"
TABLE = f"arn:aws:dynamodb:{OURS}:table/{{TableName}}"
JOB = f"arn:aws:sagemaker:{OURS}:training-job/{{TrainingJobName}}"
MODEL = f"arn:aws:sagemaker:{OURS}:model/{{ModelName}}"
CONFIGURATION = f"arn:aws:sagemaker:{OURS}:endpoint-config/{{EndpointConfigName}}"
ENDPOINT = f"arn:aws:sagemaker:{OURS}:endpoint/{{EndpointName}}"
LOG_STREAM = f"arn:aws:logs:{OURS}:log-group:{{logGroupName}}:log-stream:"
MACHINE = f"arn:aws:states:{OURS}:stateMachine:{{Machine}}"
TAGGED = ("Tags", ".+")
# The lab's bucket is encrypted with its output key, if it has one.
IN_BUCKET = r"\$BUCKET/.+"


@dataclass(frozen=True, slots=True)
class Need:
    """An action on a resource.

    ``where`` has a parameter and a pattern for its value; the action is needed if they match. An
    absent parameter is "".
    """

    action: str
    resource: str
    where: tuple[str, str] = ("", "")

    @property
    def parameters(self) -> set[str]:
        fields = [
            name
            for text in (self.action, self.resource)
            for _, name, _, _ in Formatter().parse(text)
            if name
        ]
        return {*fields, *filter(None, [self.where[0]])}


READING = (
    Need("s3:GetObject", OBJECT),
    # Without it, S3 answers a missing object with "access denied" instead of "not found".
    Need("s3:ListBucket", BUCKET),
    Need("kms:Decrypt", "$OUTPUT_KEY", where=("Object", IN_BUCKET)),
)
COPYING = (
    Need("s3:GetObject", SOURCE),
    Need("s3:PutObject", OBJECT),
    Need("kms:Decrypt", "$OUTPUT_KEY", where=("Source", IN_BUCKET)),
    Need("kms:GenerateDataKey", "$OUTPUT_KEY", where=("Object", IN_BUCKET)),
)
PUBLISHING = (Need("kms:Decrypt", "$TOPIC_KEY"), Need("kms:GenerateDataKey", "$TOPIC_KEY"))

NEEDS: Mapping[str, tuple[Need, ...]] = {
    "cloudformation:DescribeStacks": (Need("cloudformation:DescribeStacks", "$STACK"),),
    "codebuild:StartBuild": (
        Need("codebuild:StartBuild", f"arn:aws:codebuild:{OURS}:project/{{projectName}}"),
    ),
    "dynamodb:GetItem": (Need("dynamodb:GetItem", TABLE),),
    "dynamodb:PutItem": (Need("dynamodb:PutItem", TABLE),),
    "dynamodb:Query": (
        Need("dynamodb:Query", TABLE, where=("IndexName", "")),
        Need("dynamodb:Query", f"{TABLE}/index/{{IndexName}}", where=("IndexName", ".+")),
    ),
    # The permission of each write in it, and none of its own
    "dynamodb:TransactWriteItems": (Need("dynamodb:{Kind}Item", TABLE),),
    "dynamodb:UpdateItem": (Need("dynamodb:UpdateItem", TABLE),),
    "events:PutEvents": (Need("events:PutEvents", f"arn:aws:events:{OURS}:event-bus/default"),),
    "logs:DescribeLogStreams": (Need("logs:DescribeLogStreams", LOG_STREAM),),
    "logs:GetLogEvents": (Need("logs:GetLogEvents", f"{LOG_STREAM}any"),),
    "pricing:GetProducts": (Need("pricing:GetProducts", EVERYTHING),),
    "s3:CopyObject": COPYING,
    "s3:DeleteObject": (Need("s3:DeleteObject", OBJECT),),
    "s3:GetObject": READING,
    "s3:ListObjectsV2": (Need("s3:ListBucket", BUCKET),),
    "s3:PutObject": (
        Need("s3:PutObject", OBJECT),
        Need("kms:GenerateDataKey", "$OUTPUT_KEY", where=("Object", IN_BUCKET)),
    ),
    "sagemaker:CreateTrainingJob": (
        Need("sagemaker:CreateTrainingJob", JOB),
        Need("sagemaker:AddTags", JOB, where=TAGGED),
        Need("iam:PassRole", "{RoleArn}"),
    ),
    "sagemaker:DeleteEndpoint": (Need("sagemaker:DeleteEndpoint", ENDPOINT),),
    "sagemaker:DeleteEndpointConfig": (Need("sagemaker:DeleteEndpointConfig", CONFIGURATION),),
    "sagemaker:DeleteModel": (Need("sagemaker:DeleteModel", MODEL),),
    "sagemaker:DescribeEndpoint": (Need("sagemaker:DescribeEndpoint", ENDPOINT),),
    "sagemaker:DescribeTrainingJob": (Need("sagemaker:DescribeTrainingJob", JOB),),
    "sagemaker:ListEndpoints": (Need("sagemaker:ListEndpoints", EVERYTHING),),
    "sagemaker:ListTags": (
        Need("sagemaker:ListTags", f"arn:aws:sagemaker:{OURS}:endpoint/$LAB--*"),
    ),
    "sagemaker:ListTrainingJobs": (Need("sagemaker:ListTrainingJobs", EVERYTHING),),
    "sagemaker:StopTrainingJob": (Need("sagemaker:StopTrainingJob", JOB),),
    "service-quotas:GetAWSDefaultServiceQuota": (
        Need("servicequotas:GetAWSDefaultServiceQuota", EVERYTHING),
    ),
    "service-quotas:GetServiceQuota": (Need("servicequotas:GetServiceQuota", EVERYTHING),),
    "service-quotas:ListAWSDefaultServiceQuotas": (
        Need("servicequotas:ListAWSDefaultServiceQuotas", EVERYTHING),
    ),
    "service-quotas:ListServiceQuotas": (Need("servicequotas:ListServiceQuotas", EVERYTHING),),
    "sns:Publish": (Need("sns:Publish", "{TopicArn}"), *PUBLISHING),
    "ssm:GetParameters": (Need("ssm:GetParameters", f"arn:aws:ssm:{OURS}:parameter{{Name}}"),),
    "stepfunctions:DescribeExecution": (Need("states:DescribeExecution", "{executionArn}"),),
    "stepfunctions:ListExecutions": (Need("states:ListExecutions", "{stateMachineArn}"),),
    "stepfunctions:SendTaskFailure": (Need("states:SendTaskFailure", MACHINE),),
    "stepfunctions:SendTaskSuccess": (Need("states:SendTaskSuccess", MACHINE),),
}


def parameters_of(operation: str) -> set[str]:
    """The parameters that the table reads, of those that ``Call`` has; all others are left out of
    the record.
    """
    return {name for need in NEEDS.get(operation, ()) for name in need.parameters}
