"""AWS may leave out each member of an answer that its model doesn't require: adapters read these
with ``get``.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

ROOT = Path(__file__).parents[3] / "traindyno"
# What a module without a client reads of SageMaker.
READ_ANSWERS = ("DescribeTrainingJob", "ListTrainingJobs", "ListTags")
ADAPTERS = [
    *sorted((ROOT / "aws").glob("*.py")),
    ROOT / "lab/build_image.py",
    ROOT / "sagemaker/job_description.py",
]
SERVICES = (
    "sagemaker",
    "service-quotas",
    "cloudwatch",
    "s3",
    "dynamodb",
    "stepfunctions",
    "logs",
    "pricing",
    "ssm",
    "iam",
    "cloudformation",
    "sns",
    "events",
)
# Members without which the answer has no meaning: AWS's documentation names no case that lacks
# them.
ALWAYS_THERE = {
    "s3": {
        "Key": "an object's identity",
        "Size": "of a listed object",
        "ETag": "of a listed object",
    },
    "ssm": {"Parameter": "the call's answer", "Value": "a parameter's content"},
    "iam": {"Arn": "a role's identity"},
    "stepfunctions": {"name": "optional only in answers that the lab does not read"},
    "pricing": {"PriceList": "the call's answer"},
    "cloudformation": {
        "Stacks": "the call's answer",
        "OutputKey": "an output's name",
        "OutputValue": "its value",
    },
    "service-quotas": {
        "Quota": "the call's answer",
        **dict.fromkeys(("QuotaName", "QuotaCode"), "rows without them are passed over"),
    },
    "events": {"Entries": "one for each event that is sent"},
    "sagemaker": {"Tags": "the call's answer"},
}
# Reads after a test that the member is there, and reads of something else of the same name.
GUARDED = {
    "account": {"Value"},
    "objects": {"Body"},
    "quotas": {"Value"},
    "job_description": {
        "TrainingStartTime",
        "EndTime",
        "ResourceConfig",
        "SecondaryStatus",
        "InstanceType",
        "InstanceCount",
    },
    "training_jobs": {"InProgress"},
}


@cache
def optional_members(service: str, operation: str) -> frozenset[str]:
    """Members of the operation's answer that at least one of its shapes has without requiring
    them.
    """
    optional: set[str] = set()
    seen: set[str] = set()

    def walk(shape: Any) -> None:
        if shape is None or shape.name in seen:
            return
        seen.add(shape.name)
        match shape.type_name:
            case "structure":
                optional.update(set(shape.members) - set(shape.metadata.get("required", ())))
                for member in shape.members.values():
                    walk(member)
            case "list":
                walk(shape.member)
            case "map":
                walk(shape.value)

    walk(model(service).operation_model(operation).output_shape)
    return frozenset(optional)


@cache
def model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


def asked(source: str) -> list[tuple[str, str]]:
    """Service and operation of each call that the module makes: methods, and names of
    paginators.
    """
    words = set(re.findall(r"\w+", source))
    services = [name for name in SERVICES if f"mypy_boto3_{name.replace('-', '_')} " in source]
    calls = [
        (service, operation)
        for service in services
        for operation in model(service).operation_names
        if xform_name(operation) in words
    ]
    return calls or [("sagemaker", operation) for operation in READ_ANSWERS]


def subscripts(source: str) -> list[tuple[int, str]]:
    return [
        (node.lineno, node.slice.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    ]


def unguarded(source: str) -> list[tuple[int, str]]:
    return [
        (line, name)
        for line, name in subscripts(source)
        if any(
            name in optional_members(service, operation)
            and name not in ALWAYS_THERE.get(service, {})
            for service, operation in asked(source)
        )
    ]


@pytest.mark.parametrize("module", ADAPTERS, ids=lambda path: path.stem)
def test_no_adapter_takes_optional_answers_of_aws_for_granted(module: Path) -> None:
    guarded = GUARDED.get(module.stem, set())
    reads = unguarded(module.read_text(encoding="utf-8"))
    assert [(line, name) for line, name in reads if name not in guarded] == []
    assert guarded <= {name for _, name in reads}


def test_the_walk_finds_a_quota_read_without_a_check() -> None:
    source = (
        "from mypy_boto3_service_quotas import C\n"
        "x = client.get_service_quota()['Quota']['Value']\n"
    )
    assert unguarded(source) == [(2, "Value")]
