"""Whether the account may run the build of an image, as CloudFormation is told before the first
build starts.
"""

from typing import Any

import pytest
from botocore.stub import Stubber

from tests.unit.stubbed import stubbed
from traindyno.lab.build_image import QUOTA_NAME, refusal_to_build, start_build

CODE = "L-BUILDS"
LARGE = QUOTA_NAME.format("Large")


def quota(value: float) -> dict[str, Any]:
    return {"ServiceCode": "codebuild", "QuotaCode": CODE, "QuotaName": LARGE, "Value": value}


def lay_out_default(stubber: Stubber, *quotas: dict[str, Any]) -> None:
    asked = {"ServiceCode": "codebuild", "MaxResults": 100}
    stubber.add_response("list_aws_default_service_quotas", {"Quotas": list(quotas)}, asked)
    if not quotas:
        stubber.add_response("list_service_quotas", {"Quotas": []}, asked)


@pytest.mark.parametrize(("applied", "is_allowed"), [(0.0, False), (1.0, True), (60.0, True)])
def test_the_accounts_own_quota_decides(applied: float, is_allowed: bool) -> None:
    with stubbed("service-quotas") as (client, stubber):
        lay_out_default(stubber, quota(1.0))
        stubber.add_response(
            "get_service_quota",
            {"Quota": quota(applied)},
            {"ServiceCode": "codebuild", "QuotaCode": CODE},
        )
        refusal = refusal_to_build(client, size="Large", region="eu-west-1")
    assert (refusal is None) is is_allowed


def test_a_refusal_says_what_is_missing_and_how_to_ask_for_it() -> None:
    with stubbed("service-quotas") as (client, stubber):
        lay_out_default(stubber, quota(0.0))
        stubber.add_client_error("get_service_quota", "NoSuchResourceException")
        refusal = refusal_to_build(client, size="Large", region="eu-west-1") or ""
    assert f"{LARGE!r} of CodeBuild in eu-west-1 is 0, and 1 is needed" in refusal
    assert (
        f"--service-code codebuild --quota-code {CODE} --desired-value 1 --region eu-west-1"
        in refusal
    )


def test_a_quota_that_aws_does_not_list_holds_no_build_back() -> None:
    with stubbed("service-quotas") as (client, stubber):
        lay_out_default(stubber)
        assert refusal_to_build(client, size="Large", region="eu-west-1") is None


@pytest.mark.parametrize(
    ("code", "said"), [(None, None), ("AccountLimitExceededException", "0 builds in queue")]
)
def test_a_build_is_started_with_the_address_of_its_answer(
    code: str | None, said: str | None
) -> None:
    """A new account's real limit shows in the start alone."""
    event = {
        "ResponseURL": "https://answer",
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Build",
        "ResourceProperties": {"Project": "lab-image-cpu", "Size": "Medium"},
    }
    with stubbed("service-quotas") as (quotas, asked), stubbed("codebuild") as (builds, started):
        lay_out_default(asked)
        if code:
            started.add_client_error("start_build", code, "Cannot have more than 0 builds in queue")
        else:
            variables = {
                "RESPONSE_URL": "https://answer",
                "STACK_ID": "stack",
                "REQUEST_ID": "request",
            }
            given = [
                {"name": name, "value": value, "type": "PLAINTEXT"}
                for name, value in variables.items()
            ]
            given.append({"name": "LOGICAL_ID", "value": "Build", "type": "PLAINTEXT"})
            wanted = {"projectName": "lab-image-cpu", "environmentVariablesOverride": given}
            started.add_response("start_build", {"build": {"id": "b"}}, wanted)
        refusal = start_build(
            event, builds=builds, quotas=quotas, region="eu-west-1", sleep=lambda _: None
        )
    assert refusal is None if said is None else said in (refusal or "")
