import io
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.response import StreamingBody

from tests.unit.serving_in_memory import DEPLOYMENT, NAME, SETTINGS
from tests.unit.stubbed import sent_requests, stubbed
from traindyno.aws.endpoints import DeploymentRefused, Endpoints, InvocationFailed, Invocations
from traindyno.aws.prices import BATCH_TRANSFORM, HOSTING, read_prices
from traindyno.core.errors import ServiceFault, Throttled
from traindyno.sagemaker.serving.serving_description import ServingState
from traindyno.sagemaker.serving.serving_request import build_model_request

AT = datetime(2026, 11, 21, tzinfo=UTC)
ARN = f"arn:aws:sagemaker:us-east-1:111111111111:endpoint/{NAME}"


REQUEST = build_model_request(DEPLOYMENT, SETTINGS)


def create_with_error(code: str, message: str, status: int = 400) -> list[dict[str, Any]]:
    """The requests that were sent."""
    with stubbed("sagemaker") as (client, stubber):
        sent = sent_requests(client, "CreateModel")
        stubber.add_client_error("create_model", code, message, http_status_code=status)
        Endpoints(client).create_model(REQUEST)
    return sent


def test_a_model_that_exists_already_is_the_one_that_an_earlier_call_created() -> None:
    assert create_with_error("ValidationException", "Cannot create already existing model") == [REQUEST]


@pytest.mark.parametrize(
    ("code", "message", "status", "error"),
    [
        ("ThrottlingException", "Rate exceeded", 400, Throttled),
        ("InternalFailure", "", 500, ServiceFault),
        ("ResourceLimitExceeded", "The account-level service limit is 0", 400, DeploymentRefused),
        ("ValidationException", "Could not access model data", 400, DeploymentRefused),
    ],
)
def test_refusals_and_faults_have_their_own_classes(
    code: str, message: str, status: int, error: type[Exception]
) -> None:
    with pytest.raises(error, match=message or "model"):
        create_with_error(code, message, status)


@pytest.mark.parametrize(
    ("status", "reason", "state"),
    [
        ("Creating", None, ServingState(is_ready=False, failure=None)),
        ("InService", None, ServingState(is_ready=True, failure=None)),
        ("Failed", "no ping", ServingState(is_ready=False, failure="no ping")),
    ],
)
def test_an_endpoint_is_ready_failed_or_neither(status: str, reason: str | None, state: ServingState) -> None:
    described: dict[str, Any] = {
        "EndpointName": NAME, "EndpointArn": ARN, "EndpointStatus": status, "CreationTime": AT, "LastModifiedTime": AT,
    }  # fmt: skip
    if reason:
        described["FailureReason"] = reason
    with stubbed("sagemaker") as (client, stubber):
        stubber.add_response("describe_endpoint", described, {"EndpointName": NAME})
        assert Endpoints(client).find_endpoint(NAME) == state


def test_an_endpoint_that_nobody_knows_is_none_and_deleting_it_is_no_error() -> None:
    with stubbed("sagemaker") as (client, stubber):
        for operation in ("describe_endpoint", "delete_endpoint", "delete_endpoint_config", "delete_model"):
            stubber.add_client_error(operation, "ValidationException", f'Could not find endpoint "{ARN}".')
        endpoints = Endpoints(client)
        assert endpoints.find_endpoint(NAME) is None
        endpoints.delete_endpoint(NAME)
        endpoints.delete_model(NAME)


def test_an_answer_is_read_and_an_error_names_the_endpoint() -> None:
    with stubbed("sagemaker-runtime") as (client, stubber):
        body = StreamingBody(io.BytesIO(b"{}"), 2)
        expected = {
            "EndpointName": NAME,
            "Body": b"[1]",
            "ContentType": "application/json",
            "Accept": "application/json",
        }
        stubber.add_response("invoke_endpoint", {"Body": body}, expected)
        stubber.add_client_error("invoke_endpoint", "ModelError", "Received server error", http_status_code=424)
        invocations = Invocations(client)
        assert invocations.ask(NAME, b"[1]") == b"{}"
        with pytest.raises(InvocationFailed, match=f"endpoint {NAME}: .*Received server error"):
            invocations.ask(NAME, b"[1]")


@pytest.mark.parametrize(
    ("code", "status", "raised"),
    [
        ("ThrottlingException", 400, Throttled),
        ("ModelNotReadyException", 429, Throttled),
        ("ServiceUnavailable", 503, ServiceFault),
        ("ValidationError", 400, InvocationFailed),
    ],
)
def test_a_request_that_may_succeed_later_is_not_taken_for_a_wrong_model(
    code: str, status: int, raised: type[Exception]
) -> None:
    with stubbed("sagemaker-runtime") as (client, stubber):
        stubber.add_client_error("invoke_endpoint", code, "busy", http_status_code=status)
        with pytest.raises(raised, match=f"endpoint {NAME}: .*busy"):
            Invocations(client).ask(NAME, b"[1]")


@pytest.mark.parametrize(
    ("usage", "name", "kind"), [(HOSTING, "Hosting", "Host"), (BATCH_TRANSFORM, "BatchTransform", "Tsform")]
)
def test_serving_has_prices_of_its_own(usage: Any, name: str, kind: str) -> None:
    product = (
        f'{{"product": {{"attributes": {{"usagetype": "USE1-{kind}:ml.c5.xlarge"}}}}, "terms": {{"OnDemand": {{"a":'
        ' {"priceDimensions": {"b": {"unit": "Hrs", "pricePerUnit": {"USD": "0.204"}}}}}}}'
    )
    filters = [
        {"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"},
        {"Type": "TERM_MATCH", "Field": "platoinstancetype", "Value": name},
        {"Type": "TERM_MATCH", "Field": "instanceName", "Value": "ml.c5.xlarge"},
    ]
    with stubbed("pricing") as (client, stubber):
        stubber.add_response(
            "get_products", {"PriceList": [product]}, {"ServiceCode": "AmazonSageMaker", "Filters": filters}
        )
        found = read_prices(client, ["ml.c5.xlarge"], region="us-east-1", now=0, usage=usage)
    assert str(found["ml.c5.xlarge"].usd_per_hour) == "0.204"
