"""A real S3 interface on loopback for the tests that stream: MiniStack, started for them and ended after them."""

import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.training.jobs import REPO_ROOT

PROGRAM = REPO_ROOT / ".envs" / "cloud" / "bin" / "ministack"
START_SECONDS = 60


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """The environment that points clients to it."""
    port = _free_port()
    environment = {
        "PATH": "/usr/bin:/bin",
        "BIND_HOST": "127.0.0.1",
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
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
    finally:
        server.terminate()
        server.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def _wait_until_healthy(server: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert server.poll() is None, "MiniStack ended while starting"
        assert time.monotonic() < deadline, "MiniStack did not start"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
