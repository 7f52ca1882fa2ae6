"""Whether CodeBuild may run one build of the size that an image needs; the quota of new accounts is often 0."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.aws.quota_names import read_by_name

if TYPE_CHECKING:
    from mypy_boto3_service_quotas import ServiceQuotasClient

SERVICE_CODE = "codebuild"
QUOTA_NAME = "Concurrently running builds for Linux/Large environment"

# IAM takes seconds until a new role's permissions hold everywhere; the role of the deployment's check is seconds old.
DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
SECONDS_FOR_IAM, SECONDS_BETWEEN_TRIES = 60, 5


def refusal_to_build_by_a_new_role(
    service_quotas: "ServiceQuotasClient", *, region: str, sleep: Callable[[float], None]
) -> str | None:
    """As ``refusal_to_build``; for a minute, a denied request is repeated."""
    for _ in range(SECONDS_FOR_IAM // SECONDS_BETWEEN_TRIES):
        try:
            return refusal_to_build(service_quotas, region=region)
        except ClientError as error:
            if error_code(error) not in DENIED:
                raise
            sleep(SECONDS_BETWEEN_TRIES)
    return refusal_to_build(service_quotas, region=region)


def refusal_to_build(service_quotas: "ServiceQuotasClient", *, region: str) -> str | None:
    """None if at least one build may run, or if Service Quotas does not list the quota."""
    quota = read_by_name(service_quotas, QUOTA_NAME, service_code=SERVICE_CODE)
    if quota is None or quota["Value"] >= 1:
        return None
    return (
        f"the lab's images can't be built: the quota {QUOTA_NAME!r} of CodeBuild in {region} is"
        f" {quota['Value']:g}, and 1 is needed. Ask for it: aws service-quotas request-service-quota-increase"
        f" --service-code {SERVICE_CODE} --quota-code {quota['QuotaCode']} --desired-value 1 --region {region}."
        " Then deploy again."
    )
