import json
import re
from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

from infra.orchestration import GIVE_UP_AFTER
from tests.infra.synthesis import (
    KEY,
    OTHER_LAB,
    as_list,
    flat,
    lab,
    properties,
    statements,
    synthesise,
)
from traindyno.core.lab_names import OPEN_ATTEMPTS_INDEX
from traindyno.core.s3_keys import saved_model_key, suite_key
from traindyno.slices.training.card import card_key
from traindyno.store.results_bucket import USABLE_SECONDS

BUCKET = "AWS::S3::Bucket"
TABLE = "AWS::DynamoDB::GlobalTable"


@pytest.fixture(scope="module")
def lifecycle(template: Template) -> list[dict[str, Any]]:
    (results,) = [
        bucket for name, bucket in properties(template, BUCKET).items() if "Results" in name
    ]
    return list(results["LifecycleConfiguration"]["Rules"])


def encrypted_with(**default: str) -> dict[str, Any]:
    rules = [{"ServerSideEncryptionByDefault": default}]
    return {
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [Match.object_like(rule) for rule in rules]
        }
    }


def test_no_bucket_can_be_made_public_and_objects_are_encrypted(template: Template) -> None:
    names = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    blocked = {"PublicAccessBlockConfiguration": dict.fromkeys(names, True)}
    template.all_resources_properties(BUCKET, {**blocked, **encrypted_with(SSEAlgorithm="AES256")})
    template.resource_count_is(BUCKET, 2)


def test_every_access_needs_tls(template: Template) -> None:
    insecure = {
        "Effect": "Deny",
        "Action": "s3:*",
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    document = {"Statement": Match.array_with([Match.object_like(insecure)])}
    for name in properties(template, BUCKET):
        template.has_resource_properties(
            "AWS::S3::BucketPolicy", {"Bucket": {"Ref": name}, "PolicyDocument": document}
        )


def test_prepared_data_outlasts_the_longest_execution(
    lifecycle: list[dict[str, Any]],
) -> None:
    (days,) = [rule["ExpirationInDays"] for rule in lifecycle if rule.get("Prefix") == "prepared/"]
    assert days > USABLE_SECONDS / 86_400 + GIVE_UP_AFTER.to_days()


def test_large_outputs_expire_and_small_ones_stay(lifecycle: list[dict[str, Any]]) -> None:
    expiring = [rule for rule in lifecycle if "ExpirationInDays" in rule]
    (rule,) = [rule for rule in expiring if "ObjectSizeGreaterThan" in rule]
    assert (rule["Prefix"], rule["ObjectSizeGreaterThan"]) == ("runs/", 16 * 2**20)
    kept = (suite_key("e"), card_key("e"), saved_model_key("e", "r", "j", is_kept=True))
    assert not any(key.startswith(rule["Prefix"]) for rule in expiring for key in kept)
    assert any("AbortIncompleteMultipartUpload" in rule for rule in lifecycle)


def test_the_table_is_paid_by_request_restorable_and_has_an_index_of_open_rows(
    template: Template,
) -> None:
    keys, open_keys = (
        [
            {"AttributeName": name, "KeyType": kind}
            for name, kind in zip(names, ("HASH", "RANGE"), strict=True)
        ]
        for names in (("pk", "sk"), ("open", "execution_id"))
    )
    restorable = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
    table = {
        "BillingMode": "PAY_PER_REQUEST",
        "Replicas": [Match.object_like(restorable)],
        "KeySchema": keys,
        "GlobalSecondaryIndexes": [
            Match.object_like({"IndexName": OPEN_ATTEMPTS_INDEX, "KeySchema": open_keys})
        ],
    }
    template.has_resource_properties(TABLE, table)


@pytest.mark.parametrize(
    ("file", "is_kept"), [("", False), ("termination_protection = true", True)]
)
def test_the_lab_is_protected_from_deletion_at_the_files_request(file: str, is_kept: bool) -> None:
    manifest = json.loads(
        (synthesise(target="aws", file=file).folder / "manifest.json").read_text()
    )
    stack = manifest["artifacts"]["Lab"]["properties"]
    assert stack.get("terminationProtection", False) == is_kept


def test_results_have_the_labs_key_and_stay_at_the_files_request() -> None:
    template = lab(target="aws", file=f'keep_results = true\noutput_key = "{KEY}"')
    keyed = encrypted_with(SSEAlgorithm="aws:kms", KMSMasterKeyID=KEY)
    template.has_resource(BUCKET, {"Properties": keyed, "DeletionPolicy": "Retain"})
    template.has_resource(TABLE, {"DeletionPolicy": "Retain"})
    emptied = properties(template, "Custom::S3AutoDeleteObjects").values()
    assert not {flat(statement["BucketName"]) for statement in emptied} & set(
        properties(template, BUCKET, keyed)
    )
    for role in ("OrchestrationRole", "PlanRoundRole"):
        uses = [
            statement["Resource"]
            for statement in statements(template, role)
            if "kms:Decrypt" in as_list(statement["Action"])
        ]
        assert uses == [KEY]


def test_destroying_the_lab_leaves_the_log_of_image_builds_only(template: Template) -> None:
    resources = template.to_json()["Resources"].items()
    kept = [
        name for name, resource in resources if resource.get("DeletionPolicy", "Delete") != "Delete"
    ]
    # The log of a failed build must outlive the rollback of the deployment.
    assert [re.sub(r"[0-9A-F]{8}$", "", name) for name in kept] == ["CpuImageLogs"]
    emptied = properties(template, "Custom::S3AutoDeleteObjects").values()
    assert {flat(statement["BucketName"]) for statement in emptied} == set(
        properties(template, BUCKET)
    )
    assert all(
        group["RetentionInDays"] <= 31
        for group in properties(template, "AWS::Logs::LogGroup").values()
    )


def test_every_function_logs_to_a_group_of_the_lab(template: Template) -> None:
    groups = set(properties(template, "AWS::Logs::LogGroup"))
    for name, function in properties(template, "AWS::Lambda::Function").items():
        assert flat(function["LoggingConfig"]["LogGroup"]) in groups, name


def test_every_taggable_resource_names_the_lab() -> None:
    tagged = {"Tags": Match.array_with([{"Key": "traindyno:lab", "Value": "other-lab"}])}
    kinds = (BUCKET, "AWS::Lambda::Function", "AWS::IAM::Role", "AWS::SNS::Topic", "AWS::KMS::Key")
    for kind in (*kinds, "AWS::StepFunctions::StateMachine", "AWS::Logs::LogGroup"):
        lab(**OTHER_LAB).all_resources_properties(kind, tagged)
