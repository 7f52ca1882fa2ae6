"""Whether CodeBuild may run one build of the size that an image needs; the quota of new accounts is often 0."""

from typing import TYPE_CHECKING

from traindyno.aws.quota_names import quota_value, read_by_name

if TYPE_CHECKING:
    from mypy_boto3_service_quotas import ServiceQuotasClient

SERVICE_CODE = "codebuild"
QUOTA_NAME = "Concurrently running builds for Linux/Large environment"


def refusal_to_build(service_quotas: "ServiceQuotasClient", *, region: str) -> str | None:
    """None if at least one build may run, or if Service Quotas does not tell the quota."""
    quota = read_by_name(service_quotas, QUOTA_NAME, service_code=SERVICE_CODE)
    value = quota_value(quota)
    if quota is None or value is None or value >= 1:
        return None
    return (
        f"the lab's images can't be built: the quota {QUOTA_NAME!r} of CodeBuild in {region} is"
        f" {value}, and 1 is needed. Ask for it: aws service-quotas request-service-quota-increase"
        f" --service-code {SERVICE_CODE} --quota-code {quota['QuotaCode']} --desired-value 1 --region {region}."
        " Then deploy again."
    )
