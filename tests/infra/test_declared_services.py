"""What the use case of a function names, and what the function's role allows, are the same parts of
AWS.
"""

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields
from fnmatch import fnmatchcase
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

import pytest

from tests.infra.synthesis import lab, properties
from tests.permissions.policies import FunctionPolicy
from tests.permissions.reach import CLIENTS, REPO_ROOT
from traindyno.lab.end_endpoints import Serving
from traindyno.lab.environment import LabEnvironment

FUNCTIONS = sorted(path.parent.name for path in (REPO_ROOT / "lambdas").glob("*/handler.py"))
# A part of AWS, and the actions of which its users are granted some.
PARTS = {
    "objects": ("s3:*",),
    "rows": ("dynamodb:*",),
    "jobs": ("sagemaker:*TrainingJob", "sagemaker:*TrainingJobs"),
    "endpoints": ("sagemaker:*Model", "sagemaker:*Endpoint*", "sagemaker:ListTags"),
    "answers": ("states:SendTask*",),
    "executions": ("states:*Execution*",),
    "logs": ("logs:DescribeLogStreams", "logs:GetLogEvents"),
    "quotas": ("servicequotas:*",),
    "prices": ("pricing:*",),
    "messages": ("sns:*",),
    "events": ("events:*",),
    "builds": ("codebuild:*",),
    "images": ("ssm:*",),
    "stacks": ("cloudformation:*",),
}
# They come with an action above, or are Lambda's own.
ACCOMPANYING = (
    "sagemaker:AddTags",
    "iam:PassRole",
    "kms:*",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "sqs:*",
)
# The parts that a class calls. Those of traindyno/store that keep rows call the table.
ADAPTERS = {
    "ResultsBucket": {"objects"},
    "DataListing": {"objects"},
    "TrainingJobs": {"jobs"},
    "Endpoints": {"endpoints"},
    "TaskAnswers": {"answers"},
    "Executions": {"executions"},
    "LogTail": {"logs"},
    "Quotas": {"quotas", "jobs"},
    "PriceSource": {"prices"},
    "CodeBuildClient": {"builds"},
    "ParametersClient": {"images"},
    "ServiceQuotasClient": {"quotas"},
    "CloudFormationClient": {"stacks"},
    "SNSClient": {"messages"},
    "EventBridgeClient": {"events"},
}
OURS = ("traindyno.lab.", "traindyno.aws.", "traindyno.store.")


def named_by(handler: ModuleType) -> set[str]:
    """The parts that the functions called by a handler name in their parameters."""
    called = [
        member
        for member in vars(handler).values()
        if inspect.isfunction(member) and member.__module__.startswith(OURS)
    ]
    kinds = [kind for function in called for kind in inspect.get_annotations(function).values()]
    return {part for kind in kinds for part in parts_of(kind)}


def parts_of(kind: Any) -> Iterator[str]:
    """A protocol names the parts of its members, and of the protocols that it extends."""
    name = getattr(kind, "__name__", kind)
    module = getattr(kind, "__module__", "")
    if Protocol in getattr(kind, "__mro__", ()) and module.startswith("traindyno.lab."):
        members = [
            member for base in kind.__mro__ for member in inspect.get_annotations(base).values()
        ]
        yield from (part for member in members for part in parts_of(member))
    elif kind is Serving:
        yield from (part for field in fields(kind) for part in parts_of(field.type))
    elif module.startswith("traindyno.store.") and "table" in inspect.signature(kind).parameters:
        yield "rows"
    else:
        assert name in ADAPTERS or not (module.startswith("traindyno.aws.") or name in CLIENTS), (
            f"{name} calls what?"
        )
        yield from ADAPTERS.get(name, ())


def granted_to(function: str) -> set[str]:
    actions = {allowed.action for allowed in FunctionPolicy(lab(target="aws"), function).allowed()}
    assert [
        action
        for action in actions
        if not any(is_of(action, patterns) for patterns in (ACCOMPANYING, *PARTS.values()))
    ] == []
    return {
        part
        for part, patterns in PARTS.items()
        if any(is_of(action, patterns) for action in actions)
    }


def is_of(action: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(action, pattern) for pattern in patterns)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_allows_the_services_of_its_use_case_and_no_others(function: str) -> None:
    assert granted_to(function) == named_by(import_module(f"lambdas.{function}.handler"))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_has_the_variables_of_its_handler(function: str) -> None:
    handler = vars(import_module(f"lambdas.{function}.handler")).values()
    read = [
        field
        for member in handler
        if isinstance(member, type) and issubclass(member, LabEnvironment)
        for field in fields(member)
    ]
    needed = {field.name.upper() for field in read if field.default is MISSING} - {"AWS_REGION"}
    named = {"Handler": f"lambdas.{function}.handler.handle"}
    (given,) = properties(lab(target="aws"), "AWS::Lambda::Function", named).values()
    variables = set(given["Environment"]["Variables"])
    assert needed <= variables <= {"LAB", *(field.name.upper() for field in read)}
