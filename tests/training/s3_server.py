"""A real S3 interface on loopback for the tests that stream: MiniStack, started for them and ended
after them.
"""

import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from localcloud.ports import LOOPBACK, free_port
from tests.training.jobs import REPO_ROOT

PROGRAM = REPO_ROOT / ".envs" / "cloud" / "bin" / "ministack"
NEEDS_S3 = pytest.mark.skipif(
    not PROGRAM.exists(), reason="MiniStack's environment is not made: run make install"
)
START_SECONDS = 60


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """The environment that points clients to it."""
    port = free_port()
    environment = {
        "PATH": "/usr/bin:/bin",
        "BIND_HOST": LOOPBACK,
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": "us-east-1",
        "LOG_LEVEL": "WARNING",
        "TMPDIR": str(folder),
        "HOME": str(folder),
    }
    server = subprocess.Popen(
        [PROGRAM], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    try:
        _wait_until_healthy(server, port)
        yield {
            "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
    finally:
        server.terminate()
        server.wait(timeout=30)


def upload(folder: Path, environment: dict[str, str]) -> str:
    """The S3 prefix with the folder's files, in a new bucket."""
    client = s3_client(environment)
    client.create_bucket(Bucket="corpus")
    for path in folder.iterdir():
        client.upload_file(str(path), "corpus", f"books/{path.name}")
    return "s3://corpus/books"


def s3_client(environment: dict[str, str]) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        region_name=environment["AWS_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )


def _wait_until_healthy(server: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert server.poll() is None, "MiniStack ended while starting"
        assert time.monotonic() < deadline, "MiniStack did not start"
        try:
            urllib.request.urlopen(f"http://{LOOPBACK}:{port}/_ministack/health", timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
