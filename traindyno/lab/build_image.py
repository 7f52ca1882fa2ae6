"""Start the build of an image, if the account may: CodeBuild's quota for new accounts is often
0.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from traindyno.aws.image_builds import CodeBuildClient, NoBuildAllowed, run_build
from traindyno.aws.new_role import as_new_role
from traindyno.aws.quotas import quota_value, read_by_name

if TYPE_CHECKING:
    from mypy_boto3_service_quotas import ServiceQuotasClient

SERVICE_CODE = "codebuild"
QUOTA_NAME = "Concurrently running builds for Linux/{} environment"


def start_build(
    event: Mapping[str, Any],
    *,
    builds: CodeBuildClient,
    quotas: "ServiceQuotasClient",
    region: str,
    sleep: Callable[[float], None],
) -> str | None:
    """Why no build was started; None where one was, which answers the custom resource's
    ``event``.
    """
    wanted = event["ResourceProperties"]
    if refusal := as_new_role(
        lambda: refusal_to_build(quotas, size=wanted["Size"], region=region), sleep=sleep
    ):
        return refusal
    answers = {
        "RESPONSE_URL": event["ResponseURL"],
        "STACK_ID": event["StackId"],
        "REQUEST_ID": event["RequestId"],
        "LOGICAL_ID": event["LogicalResourceId"],
    }
    try:
        as_new_role(lambda: run_build(builds, wanted["Project"], answers), sleep=sleep)
    except NoBuildAllowed as error:
        return (
            f"CodeBuild runs no Linux/{wanted['Size']} build in {region}, whatever its quota says: "
            f"{error}"
        )
    return None


def refusal_to_build(
    service_quotas: "ServiceQuotasClient", *, size: str, region: str
) -> str | None:
    """None if at least one build of this size may run, or if Service Quotas does not tell the
    quota.
    """
    name = QUOTA_NAME.format(size)
    quota = read_by_name(service_quotas, name, service_code=SERVICE_CODE)
    value = quota_value(quota)
    if quota is None or value is None or value >= 1:
        return None
    return (
        f"the lab's images can't be built: the quota {name!r} of CodeBuild in {region} is {value}, "
        "and 1 is needed. Ask for it: aws service-quotas request-service-quota-increase "
        f"--service-code {SERVICE_CODE} --quota-code {quota['QuotaCode']} --desired-value 1 "
        f"--region {region}. Then deploy again."
    )
