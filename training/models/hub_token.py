"""Reads the token of a gated Hub model from Secrets Manager in the container, and keeps it in this process only."""

import json
import os
from collections.abc import Callable, MutableMapping
from typing import Any

from training.errors import WorkloadError

TOKEN_VARIABLE = "HF_TOKEN"
TOKEN_FIELDS = ("token", TOKEN_VARIABLE)


def connect_secrets(region: str) -> Any:
    import boto3  # noqa: PLC0415  (only jobs with a secret need it; every image has it)

    return boto3.client("secretsmanager", region_name=region)


def use_hub_token(
    secret_arn: str | None,
    *,
    environment: MutableMapping[str, str] = os.environ,
    connect: Callable[[str], Any] = connect_secrets,
) -> None:
    """Sets the variable that huggingface_hub reads. Raises WorkloadError without repeating the secret."""
    if secret_arn is None or TOKEN_VARIABLE in environment:
        return
    try:
        text: str = connect(secret_arn.split(":")[3]).get_secret_value(SecretId=secret_arn)["SecretString"]
    except Exception as error:  # noqa: BLE001  (botocore may be missing here, so its errors can't be named)
        raise WorkloadError(
            f"the Hub token can't be read from {secret_arn}: {type(error).__name__}; expected a secret with text"
            " that the job's role may read: deploy the lab with it in -c hub_token_secrets"
        ) from None
    environment[TOKEN_VARIABLE] = _token_in(text, secret_arn)


def _token_in(text: str, secret_arn: str) -> str:
    """The secret is the token itself, or a JSON object that holds it."""
    stripped = text.strip()
    if not stripped.startswith("{"):
        return stripped
    fields: dict[str, Any] = json.loads(stripped)
    found = next((fields[name] for name in TOKEN_FIELDS if isinstance(fields.get(name), str)), None)
    if found is None:
        expected = " or ".join(TOKEN_FIELDS)
        raise WorkloadError(f"{secret_arn} holds a JSON object without the token; expected a text field {expected}")
    return str(found)
