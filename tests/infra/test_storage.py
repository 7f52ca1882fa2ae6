import re
from typing import Any

import pytest

from infra.orchestration import GIVE_UP_AFTER
from tests.infra.synthesis import KEY, OTHER_LAB, Template, as_list, flat, lab
from traindyno.core.lab_names import OPEN_ATTEMPTS_INDEX
from traindyno.store.token_cache import USABLE_SECONDS


@pytest.fixture(scope="module")
def buckets() -> dict[str, dict[str, Any]]:
    return lab(target="aws").of_type("AWS::S3::Bucket")


def test_no_bucket_can_be_made_public(buckets: dict[str, dict[str, Any]]) -> None:
    blocked = {"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"}
    assert len(buckets) == 2
    for bucket in buckets.values():
        assert {name for name, value in bucket["PublicAccessBlockConfiguration"].items() if value} == blocked


def test_objects_are_encrypted_and_every_access_needs_tls(buckets: dict[str, dict[str, Any]]) -> None:
    policies = lab(target="aws").of_type("AWS::S3::BucketPolicy").values()
    insecure = {"Bool": {"aws:SecureTransport": "false"}}
    for name, bucket in buckets.items():
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
        (policy,) = [policy for policy in policies if policy["Bucket"] == {"Ref": name}]
        denied = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Deny"]
        assert any(each["Condition"] == insecure and each["Action"] == "s3:*" for each in denied)


def test_prepared_data_outlasts_the_longest_execution_that_may_begin_to_read_it(
    buckets: dict[str, dict[str, Any]],
) -> None:
    (results,) = [bucket for name, bucket in buckets.items() if "Results" in name]
    rules = results["LifecycleConfiguration"]["Rules"]
    (days,) = [rule["ExpirationInDays"] for rule in rules if rule.get("Prefix") == "prepared/"]
    usable_days, longest_execution_days = USABLE_SECONDS / 86_400, GIVE_UP_AFTER.to_days()
    assert days > usable_days + longest_execution_days


def test_large_outputs_expire_and_small_ones_stay(buckets: dict[str, dict[str, Any]]) -> None:
    (results,) = [bucket for name, bucket in buckets.items() if "Results" in name]
    expiring = [rule for rule in results["LifecycleConfiguration"]["Rules"] if "ExpirationInDays" in rule]
    (rule,) = [rule for rule in expiring if "ObjectSizeGreaterThan" in rule]
    assert (rule["Prefix"], rule["ObjectSizeGreaterThan"]) == ("runs/", 16 * 2**20)
    assert not any(rule["Prefix"] == "suites/" for rule in expiring)
    assert any("AbortIncompleteMultipartUpload" in rule for rule in results["LifecycleConfiguration"]["Rules"])


def test_the_table_is_paid_by_request_and_can_be_restored_to_any_second() -> None:
    table = lab(target="aws").only("AWS::DynamoDB::GlobalTable")
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    (replica,) = table["Replicas"]
    assert replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]


def test_open_attempts_are_found_by_an_index_that_holds_nothing_else() -> None:
    table = lab(target="aws").only("AWS::DynamoDB::GlobalTable")
    (index,) = table["GlobalSecondaryIndexes"]
    assert index["IndexName"] == OPEN_ATTEMPTS_INDEX
    assert [key["AttributeName"] for key in index["KeySchema"]] == ["open", "execution_id"]
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]


def test_results_have_the_labs_key_and_stay_where_the_context_asks_for_it() -> None:
    template = lab(target="aws", file=f'keep_results = true\noutput_key = "{KEY}"')
    (name,) = [each for each in template.of_type("AWS::S3::Bucket") if "Results" in each]
    (rule,) = template.of_type("AWS::S3::Bucket")[name]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}
    resources = template.document["Resources"]
    kept = {each for each, found in resources.items() if found.get("DeletionPolicy") == "Retain"}
    assert {name, *template.of_type("AWS::DynamoDB::GlobalTable")} <= kept
    emptied = {flat(each["BucketName"]) for each in template.of_type("Custom::S3AutoDeleteObjects").values()}
    assert name not in emptied
    uses = resources_of(template, "OrchestrationRole", "kms:Decrypt") | resources_of(
        template, "PlanRoundRole", "kms:Decrypt"
    )
    assert uses == {KEY}


def resources_of(template: Template, role: str, action: str) -> set[str]:
    found = [each for each in template.statements(role) if action in as_list(each["Action"])]
    return {flat(resource) for each in found for resource in as_list(each["Resource"])}


def test_destroying_the_lab_leaves_the_log_of_image_builds_only() -> None:
    template = lab(target="aws")
    kept = [
        name
        for name, resource in template.document["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    ]
    # The log of a failed build must outlive the rollback of the deployment.
    assert [re.sub(r"[0-9A-F]{8}$", "", name) for name in kept] == ["CpuImageLogs"]
    emptied = template.of_type("Custom::S3AutoDeleteObjects").values()
    assert {flat(each["BucketName"]) for each in emptied} == set(template.of_type("AWS::S3::Bucket"))
    groups = template.of_type("AWS::Logs::LogGroup").values()
    assert all(group["RetentionInDays"] <= 31 for group in groups)


def test_every_function_logs_to_a_group_of_the_lab() -> None:
    template = lab(target="aws")
    groups = set(template.of_type("AWS::Logs::LogGroup"))
    for name, function in template.of_type("AWS::Lambda::Function").items():
        assert flat(function["LoggingConfig"]["LogGroup"]) in groups, name


def test_every_resource_that_can_be_tagged_names_the_lab() -> None:
    template = lab(**OTHER_LAB)
    taggable = ("AWS::S3::Bucket", "AWS::Lambda::Function", "AWS::IAM::Role", "AWS::SNS::Topic", "AWS::KMS::Key")
    for kind in (*taggable, "AWS::StepFunctions::StateMachine", "AWS::Logs::LogGroup"):
        for name, properties in template.of_type(kind).items():
            tags = {tag["Key"]: tag["Value"] for tag in as_list(properties["Tags"])}
            assert tags["traindyno:lab"] == "other-lab", name
