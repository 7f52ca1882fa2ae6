"""A price that is given to the local service stands in the place of the snapshot's."""

import json
from decimal import Decimal

from localcloud.sagemaker_service.api.pricing_api import PricingApi


def usd_per_hour(api: PricingApi, instance_type: str) -> list[str]:
    conditions = [{"Type": "TERM_MATCH", "Field": "instanceName", "Value": instance_type}]
    answer = api.operations()["GetProducts"](
        {"ServiceCode": "AmazonSageMaker", "Filters": conditions}
    )
    terms = [product["terms"]["OnDemand"] for product in map(json.loads, answer["PriceList"])]
    dimensions = [
        dimension
        for term in terms
        for offer in term.values()
        for dimension in offer["priceDimensions"].values()
    ]
    return [dimension["pricePerUnit"]["USD"] for dimension in dimensions]


def test_a_given_price_replaces_the_snapshots_and_leaves_the_others() -> None:
    plain = PricingApi({})
    given = PricingApi({"ml.p4d.24xlarge": Decimal("37.69"), "ml.trn2.48xlarge": Decimal(45)})
    assert usd_per_hour(plain, "ml.p4d.24xlarge") == ["25.2512860000"]
    assert usd_per_hour(given, "ml.p4d.24xlarge") == ["37.6900000000"]
    assert (
        usd_per_hour(given, "ml.trn1.32xlarge")
        == usd_per_hour(plain, "ml.trn1.32xlarge")
        == ["24.7250000000"]
    )
    assert usd_per_hour(given, "ml.trn2.48xlarge") == [
        "45.0000000000"
    ]  # the snapshot has no price of it
