"""The AWS regions and profiles that the installed botocore and the AWS settings know."""

from functools import cache

from botocore.session import Session


@cache
def known_regions() -> tuple[str, ...]:
    """The regions with SageMaker, those of partition ``aws`` first."""
    session = Session()
    return tuple(
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("sagemaker", partition)
    )


def known_profiles() -> list[str]:
    return list(Session().available_profiles)
