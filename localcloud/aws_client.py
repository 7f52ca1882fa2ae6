"""AWS clients of a local cloud, for a process whose own environment is the user's."""

from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config


def local_client(settings: Mapping[str, str], service: str, **options: Any) -> Any:
    """``settings``: the environment variables of the local cloud; ``options``: those of botocore's ``Config``.

    A proxy of the user must not get the requests: they have the local cloud's access key.
    """
    client: Any = boto3.client(
        service,  # type: ignore[call-overload]
        aws_access_key_id=settings["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=settings["AWS_SECRET_ACCESS_KEY"],
        region_name=settings["AWS_REGION"],
        endpoint_url=settings["AWS_ENDPOINT_URL"],
        config=Config(proxies={}, **options),
    )
    return client
