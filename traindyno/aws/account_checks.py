"""Read-only checks of an AWS account for a lab: bootstrap, images, deployment."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code

PUBLIC_IMAGE = re.compile(r"public\.ecr\.aws/(?P<repository>[^:]+):(?P<tag>.+)")
MANIFEST_TYPES = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json"
TIMEOUT_SECONDS = 20


def bootstrap_version(ssm: Any, qualifier: str) -> int | None:
    """None where the region is not bootstrapped for the CDK with this qualifier."""
    try:
        return int(ssm.get_parameter(Name=f"/cdk-bootstrap/{qualifier}/version")["Parameter"]["Value"])
    except ClientError as error:
        if error_code(error) == "ParameterNotFound":
            return None
        raise


def definition_problems(stepfunctions: Any, state_machine_arn: str) -> Iterator[str]:
    """The findings of Step Functions' own validation of the deployed state machine."""
    definition = stepfunctions.describe_state_machine(stateMachineArn=state_machine_arn)["definition"]
    answer = stepfunctions.validate_state_machine_definition(definition=definition, type="STANDARD")
    return (f"{each['severity']} {each['code']}: {each['message']}" for each in answer["diagnostics"])


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


def public_image_digest(uri: str, *, fetch: Callable[[urllib.request.Request], Any] | None = None) -> str | None:
    """The digest that a public image's tag has now; None if the gallery has no such tag."""
    found = PUBLIC_IMAGE.fullmatch(uri)
    if found is None:
        raise ValueError(f"{uri} is not an image of public.ecr.aws with a tag")
    fetch = fetch or (lambda request: urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS))
    with fetch(urllib.request.Request("https://public.ecr.aws/token/")) as answer:
        token = json.load(answer)["token"]
    manifest = urllib.request.Request(
        f"https://public.ecr.aws/v2/{found['repository']}/manifests/{found['tag']}",
        headers={"Authorization": f"Bearer {token}", "Accept": MANIFEST_TYPES},
        method="HEAD",
    )
    try:
        with fetch(manifest) as answer:
            digest: str | None = answer.headers["Docker-Content-Digest"]
            return digest
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise
