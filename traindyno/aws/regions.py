"""The AWS regions and profiles that the installed botocore and the AWS settings know."""

from functools import cache

from botocore.session import Session


@cache
def known_regions() -> tuple[str, ...]:
    """The regions with SageMaker in AWS's standard partition: a lab needs its Price List and public
    images.
    """
    return tuple(Session().get_available_regions("sagemaker", "aws"))


def known_profiles() -> list[str]:
    return list(Session().available_profiles)
