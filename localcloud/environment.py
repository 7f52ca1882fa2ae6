"""The environment variables with which programs use a local cloud, and nothing else.

boto3, the AWS command line and the CDK read them. The access key in them is needed by every
request to the local cloud.
"""

import os
import secrets
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config

from localcloud.home import HOME_VARIABLE, Credentials, Home, HomeUnusable, Ports
from localcloud.ports import LOOPBACK

ACCOUNT = "000000000000"
REGION = "us-east-1"
# Without these variables of the user, no request of the local cloud can reach AWS.
FOREIGN = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")
FILE = "credentials"
KEY_BYTES = 20


def aws_settings(ports: Ports, access_key_id: str) -> dict[str, str]:
    sagemaker = f"http://{LOOPBACK}:{ports.sagemaker}"
    return {
        "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{ports.aws}",
        "AWS_ENDPOINT_URL_SAGEMAKER": sagemaker,
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": sagemaker,
        "AWS_ENDPOINT_URL_SERVICE_QUOTAS": sagemaker,
        "AWS_ENDPOINT_URL_PRICING": sagemaker,
        "AWS_ACCESS_KEY_ID": access_key_id,
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        # Some programs read one, some the other, and a proxy of the user must not get these
        # requests.
        "NO_PROXY": f"{LOOPBACK},localhost",
        "no_proxy": f"{LOOPBACK},localhost",
    }


def local_environment(ports: Ports, access_key_id: str) -> dict[str, str]:
    """A whole process environment: this one without the user's AWS settings, with the local
    cloud's.
    """
    settings = aws_settings(ports, access_key_id)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in FOREIGN and (name in settings or not name.startswith("AWS_ENDPOINT_URL"))
    }
    excepted = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    names = (*excepted.split(","), *settings["NO_PROXY"].split(","))
    direct = ",".join(dict.fromkeys(name.strip() for name in names if name.strip()))
    return {**kept, **settings, "NO_PROXY": direct, "no_proxy": direct}


def make_access_key(home: Home) -> bool:
    """True if the home had none."""
    if _stored(home):
        return False
    home.write(FILE, Credentials(access_key_id=f"LOCAL{secrets.token_hex(KEY_BYTES).upper()}"))
    return True


def read_access_key(home: Home) -> str:
    """Reads the access key of the local cloud.

    A file of another user is refused, because requests would go to that user's local cloud.
    """
    access_key = _stored(home)
    path = home.document(FILE)
    if access_key and path.stat().st_uid != os.geteuid():
        raise HomeUnusable(
            f"{path} belongs to user {path.stat().st_uid}, and this is user {os.geteuid()}: set "
            f"{HOME_VARIABLE} to a folder of your own"
        )
    if not access_key:
        raise HomeUnusable(
            f"the local cloud in {home.folder} has no access key, which every request to it needs; "
            "make one with: traindyno local up"
        )
    return access_key


def _stored(home: Home) -> str | None:
    credentials = home.read_as(FILE, Credentials)
    return credentials.access_key_id if credentials else None


def local_client(settings: Mapping[str, str], service: str, **options: Any) -> Any:
    """Makes a client of a service of the local cloud.

    A proxy of the user must not get the requests, because they have the local cloud's access key.

    Args:
        settings: The environment variables of the local cloud.
        service: The service's name in boto3.
        options: Options of botocore's ``Config``.
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
