"""Service Quotas and the Price List answer boto3 as AWS does."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.jobs import client
from tests.local.running_service import RunningService

P4D_TRAINING = "L-09B4A649"


def code_of(call: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**request)
    return str(caught.value.response["Error"]["Code"])


@pytest.fixture(scope="module")
def quotas(service: RunningService) -> Any:
    return client("service-quotas", service.endpoint)


def test_a_quota_without_an_applied_value_has_a_default_only(quotas: Any) -> None:
    asked = {"ServiceCode": "sagemaker", "QuotaCode": P4D_TRAINING}
    assert code_of(quotas.get_service_quota, **asked) == "NoSuchResourceException"
    default = quotas.get_aws_default_service_quota(**asked)["Quota"]
    assert (default["Value"], default["QuotaName"]) == (0, "ml.p4d.24xlarge for training job usage")
    assert quotas.list_service_quotas(ServiceCode="sagemaker")["Quotas"] == []


def test_defaults_come_in_pages(quotas: Any) -> None:
    pages = quotas.get_paginator("list_aws_default_service_quotas").paginate(
        ServiceCode="sagemaker"
    )
    names = [quota["QuotaName"] for page in pages for quota in page["Quotas"]]
    assert len(names) == len(set(names)) > 100
    assert "local.cpu for training job usage" in names


def products(service: RunningService, **wanted: str) -> list[dict[str, Any]]:
    filters = [
        {"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()
    ]
    answer = client("pricing", service.endpoint).get_products(
        ServiceCode="AmazonSageMaker", Filters=filters
    )
    return [json.loads(text) for text in answer["PriceList"]]


def test_a_price_is_found_by_region_dimension_and_type_and_says_it_is_a_snapshot(
    service: RunningService,
) -> None:
    (product,) = products(
        service, regionCode="us-east-1", platoinstancetype="Training", instanceName="ml.g5.12xlarge"
    )
    attributes = product["product"]["attributes"]
    assert attributes["usagetype"] == "USE1-Train:ml.g5.12xlarge"
    assert "as of 2026-11-21" in attributes["localSnapshot"]
    (term,) = product["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    assert (dimension["unit"], dimension["pricePerUnit"]) == ("Hrs", {"USD": "7.0900000000"})


def test_types_of_no_known_price_and_other_regions_have_none(service: RunningService) -> None:
    assert products(service, instanceName="ml.p6-b200.48xlarge") == []
    assert products(service, regionCode="eu-west-1", instanceName="ml.g5.12xlarge") == []


@pytest.mark.parametrize("component", ["Training", "Hosting"])
def test_this_machine_has_a_nominal_price(service: RunningService, component: str) -> None:
    (product,) = products(service, platoinstancetype=component, instanceName="local.cpu")
    assert "nominal" in product["product"]["attributes"]["localSnapshot"]
