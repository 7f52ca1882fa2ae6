"""A lab's storage in S3 and DynamoDB."""

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from infra.permissions import acknowledge
from traindyno.core.lab_names import OPEN_ATTEMPTS_INDEX
from traindyno.core.s3_keys import (
    CODE_PREFIX,
    DATA_PREFIX,
    PREPARED_PREFIX,
    RUNS_PREFIX,
    TOKEN_MARKERS_PREFIX,
)

LARGE_OBJECT_BYTES = 16 * 2**20
EMPTYING = "Custom::S3AutoDeleteObjectsCustomResourceProvider"


class Storage(Construct):
    """The results bucket, its access logs, and the table of executions and attempts.

    Args:
        scope: The lab's stack.
        construct_id: The name within it.
        tags: The lab's tags, which the CDK does not give to its own function.
        empties_bucket: Whether destroying the stack deletes the objects too, by a function that
            the CDK provides.
        key_arn: The key that encrypts all that is written to the results bucket, checkpoints and
            copies of models too.
        keeps_results: Whether bucket and table stay when the stack is destroyed.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        tags: Mapping[str, str],
        empties_bucket: bool,
        key_arn: str | None,
        keeps_results: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        self._empties_bucket = empties_bucket
        self._results_policy = (
            cdk.RemovalPolicy.RETAIN if keeps_results else cdk.RemovalPolicy.DESTROY
        )
        self.key_arn = key_arn
        self.access_logs = self._bucket(
            "AccessLogs", lifecycle=[s3.LifecycleRule(expiration=cdk.Duration.days(90))]
        )
        self.results = self._bucket(
            "Results",
            lifecycle=_results_lifecycle(),
            access_logs=self.access_logs,
            key=kms.Key.from_key_arn(self, "Key", key_arn) if key_arn else None,
            removal=self._results_policy,
        )
        self.table = self._table()
        self.bucket_arn = self.results.bucket_arn
        self.table_arn = self.table.table_arn
        self.environment = {"BUCKET": self.results.bucket_name, "TABLE": self.table.table_name}
        if empties_bucket:
            _settle_emptying_function(cdk.Stack.of(self), tags)
        number_of_bytes = (
            "The CDK writes the number of bytes as a number where the schema says text; "
            "CloudFormation takes both."
        )
        acknowledge(self.results, {"CloudFormation-Validate::W9003": number_of_bytes})
        no_logs_of_logs = (
            "This bucket holds the access logs of the results bucket; logging its own accesses "
            "would never end."
        )
        acknowledge(self.access_logs, {"AwsSolutions-S1": no_logs_of_logs})

    def _bucket(
        self,
        construct_id: str,
        *,
        lifecycle: list[s3.LifecycleRule],
        access_logs: s3.IBucket | None = None,
        key: kms.IKey | None = None,
        removal: cdk.RemovalPolicy = cdk.RemovalPolicy.DESTROY,
    ) -> s3.Bucket:
        return s3.Bucket(
            self,
            construct_id,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            bucket_key_enabled=True if key else None,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            server_access_logs_bucket=access_logs,
            lifecycle_rules=lifecycle,
            removal_policy=removal,
            auto_delete_objects=self._empties_bucket and removal is cdk.RemovalPolicy.DESTROY,
        )

    def _table(self) -> dynamodb.TableV2:
        return dynamodb.TableV2(
            self,
            "Table",
            partition_key=_text("pk"),
            sort_key=_text("sk"),
            billing=dynamodb.Billing.on_demand(),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            # Only rows of open attempts carry the attribute, so the index is as small as what is in
            # flight.
            global_secondary_indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(
                    index_name=OPEN_ATTEMPTS_INDEX,
                    partition_key=_text("open"),
                    sort_key=_text("execution_id"),
                )
            ],
            removal_policy=self._results_policy,
        )


def _settle_emptying_function(stack: cdk.Stack, tags: Mapping[str, str]) -> None:
    """Gives the CDK's function that empties the bucket the lab's tags and a log that expires.

    The CDK has no property for these.
    """
    provider = stack.node.find_child(EMPTYING)
    own = [{"Key": key, "Value": value} for key, value in tags.items()]
    for name in ("Handler", "Role"):
        _resource(provider, name).add_property_override("Tags", own)
    log_group = logs.LogGroup(
        stack,
        "EmptyingLogs",
        retention=logs.RetentionDays.ONE_MONTH,
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )
    _resource(provider, "Handler").add_property_override(
        "LoggingConfig.LogGroup", log_group.log_group_name
    )


def _resource(provider: IConstruct, name: str) -> cdk.CfnResource:
    resource = provider.node.find_child(name)
    assert isinstance(resource, cdk.CfnResource), (
        f"{resource.node.path} is one CloudFormation resource"
    )
    return resource


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _results_lifecycle() -> list[s3.LifecycleRule]:
    # Results are written once under their own name, so the bucket keeps no versions that would
    # bill.
    return [
        s3.LifecycleRule(abort_incomplete_multipart_upload_after=cdk.Duration.days(7)),
        # models and checkpoints; results, step logs and reports are smaller and are kept
        s3.LifecycleRule(
            prefix=RUNS_PREFIX,
            object_size_greater_than=LARGE_OBJECT_BYTES,
            expiration=cdk.Duration.days(30),
        ),
        # 90 days are more than the longest time of reuse (60 days) plus the longest execution (28
        # days).
        *(
            s3.LifecycleRule(prefix=prefix, expiration=cdk.Duration.days(90))
            for prefix in (PREPARED_PREFIX, TOKEN_MARKERS_PREFIX, CODE_PREFIX, DATA_PREFIX)
        ),
        s3.LifecycleRule(
            transitions=[
                s3.Transition(
                    storage_class=s3.StorageClass.INTELLIGENT_TIERING,
                    transition_after=cdk.Duration.days(30),
                )
            ]
        ),
    ]
