"""Training plans that SageMaker offers: reserved capacity, paid in advance."""

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import AwsError, error_code, error_message
from traindyno.core.planning.regions import OfferSearch, PlanOffer

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

CURRENCY = "USD"


def find_offer(sagemaker: "SageMakerClient", instance_type: str, *, instance_count: int, hours: int) -> OfferSearch:
    """The offer that starts first. An error of AWS is the reason why there is none: the comparison goes on."""
    try:
        answer = sagemaker.search_training_plan_offerings(
            InstanceType=instance_type,  # type: ignore[arg-type]  # botocore's list lags behind AWS's
            InstanceCount=instance_count,
            DurationHours=hours,
            TargetResources=["training-job"],
        )
    except AwsError as error:
        return OfferSearch(offer=None, reason=_reason(error))
    offers = [found for row in answer["TrainingPlanOfferings"] if (found := _offer(row, instance_count, hours))]
    if not offers:
        return OfferSearch(offer=None, reason="none is offered")
    return OfferSearch(offer=min(offers, key=lambda offer: offer.starts_at))


def _offer(row: Any, instance_count: int, hours: int) -> PlanOffer | None:
    """None of an offer in another currency, or without a time to start."""
    capacity: Any = next(iter(row.get("ReservedCapacityOfferings", ())), {})
    starts, count = capacity.get("StartTime"), capacity.get("InstanceCount", instance_count)
    duration = int(row.get("DurationHours", hours))
    if row.get("CurrencyCode", CURRENCY) != CURRENCY or starts is None or not count * duration:
        return None
    return PlanOffer(
        starts_at=starts.timestamp(),
        instance_count=count,
        hours=duration,
        usd_per_hour=Decimal(row["UpfrontFee"]) / (count * duration),
        zone=capacity.get("AvailabilityZone"),
    )


def _reason(error: Exception) -> str:
    return f"{error_code(error)}: {error_message(error)}" if isinstance(error, ClientError) else str(error)
