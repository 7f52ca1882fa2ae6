"""Read-only checks of an AWS account for a lab: bootstrap and images."""

from typing import Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code


def bootstrap_version(ssm: Any, qualifier: str) -> int | None:
    """None where the region is not bootstrapped for the CDK with this qualifier."""
    try:
        return int(ssm.get_parameter(Name=f"/cdk-bootstrap/{qualifier}/version")["Parameter"]["Value"])
    except ClientError as error:
        if error_code(error) == "ParameterNotFound":
            return None
        raise


def pull_problem(ecr: Any, uri: str) -> str | None:
    """Why the account can't pull the image from another account's registry; None if it can."""
    registry, _, image = uri.partition("/")
    repository, _, tag = image.partition(":")
    wanted = {"registryId": registry.partition(".")[0], "repositoryName": repository, "imageIds": [{"imageTag": tag}]}
    try:
        failures = ecr.batch_get_image(**wanted).get("failures", [])
    except ClientError as error:
        return str(error)
    return next((f"{each.get('failureCode')}: {each.get('failureReason')}" for each in failures), None)
