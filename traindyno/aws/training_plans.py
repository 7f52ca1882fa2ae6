"""Training plans that SageMaker offers: reserved capacity, paid in advance."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import AwsError, error_code, error_message
from traindyno.core.planning.regions import OfferSearch
from traindyno.sagemaker.training_plan_offers import read_offers

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient


def find_offer(sagemaker: "SageMakerClient", instance_type: str, *, instance_count: int, hours: int) -> OfferSearch:
    """The offer that starts first. If AWS returns an error, it is the reason for no offer, and the comparison
    continues.
    """
    try:
        answer = sagemaker.search_training_plan_offerings(
            InstanceType=instance_type,  # type: ignore[arg-type]  # botocore's list lags behind AWS's
            InstanceCount=instance_count,
            DurationHours=hours,
            TargetResources=["training-job"],
        )
    except AwsError as error:
        return OfferSearch(offer=None, reason=_reason(error))
    offers = read_offers(answer["TrainingPlanOfferings"], instance_count=instance_count, hours=hours)
    return OfferSearch(offer=offers[0]) if offers else OfferSearch(offer=None, reason="none is offered")


def _reason(error: Exception) -> str:
    return f"{error_code(error)}: {error_message(error)}" if isinstance(error, ClientError) else str(error)
