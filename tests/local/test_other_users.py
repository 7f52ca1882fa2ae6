"""What another user of this machine gets from a local cloud: 403 at every port, and none of its
files.

Root becomes another user for these requests. Without root they are sent as this user, who is
refused as well: only the access key counts.
"""

import contextlib
import http.client
import multiprocessing
import os
import re
import socket
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import boto3
import botocore.session
import psutil
import pytest

from localcloud import cloud
from localcloud.environment import read_access_key
from localcloud.gate import authorization
from localcloud.home import ENVIRONMENTS, REPO_ROOT
from localcloud.worker_fork_server import SERVICES
from tests.archives import tar_gz
from tests.local.local_lab import LocalLab
from tests.local.test_hosting import HANDLER, host_model, wait_for

pytestmark = pytest.mark.local

NOBODY = 65534
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FOO")
ROUTE = re.compile(r'f?"(/[^"\s]*)"')
ENDPOINT = "of-the-owner"
# MiniStack does not serve these.
ELSEWHERE = {"pricing", "sagemaker", "service-quotas"}
Asked = tuple[str, str, Mapping[str, str]]
Found = TypeVar("Found")


def as_other_user(look: Callable[[], Found]) -> Found:
    """What ``look`` returns in a process of a user without rights."""

    def look_there() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        sender.send(look())

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=look_there)
    process.start()
    sender.close()
    received: Found = receiver.recv()
    process.join()
    return received


def answer_of(port: int, asked: Asked) -> tuple[int, bytes]:
    method, path, headers = asked
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, b"{}", dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def answers_other_than_403(port: int, requests: Sequence[Asked]) -> list[Any]:
    def look() -> list[Any]:
        answers = [(asked, *answer_of(port, asked)) for asked in requests]
        return [(asked, status, body[:200]) for asked, status, body in answers if status != 403]

    return as_other_user(look)


@pytest.fixture(scope="module")
def hosted(lab: LocalLab) -> Iterator[LocalLab]:
    """The lab with an endpoint."""
    bucket = lab.deployment().bucket
    key = "models/of-the-owner.tar.gz"
    model = tar_gz({"code/inference.py": HANDLER.replace("{at_load}", "pass")})
    lab.client("s3").put_object(Bucket=bucket, Key=key, Body=model)
    sagemaker = lab.client("sagemaker")
    host_model(sagemaker, ENDPOINT, f"s3://{bucket}/{key}")
    wait_for(sagemaker, ENDPOINT, "InService")
    yield lab
    sagemaker.delete_endpoint(EndpointName=ENDPOINT)


def processes_of(lab: LocalLab) -> list[psutil.Process]:
    daemons = [lab.home.read_daemon(part) for part in (cloud.MINISTACK, cloud.SAGEMAKER)]
    roots = [psutil.Process(daemon.process_id) for daemon in daemons if daemon]
    return [process for root in roots for process in (root, *root.children(recursive=True))]


def arguments_of(process: psutil.Process) -> str:
    """A function's worker may end meanwhile, and has none then."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def ports_of(lab: LocalLab) -> dict[int, str]:
    """Every port that a process of the local cloud listens on, with the program that does."""
    return {
        connection.laddr.port: arguments_of(process)
        for process in processes_of(lab)
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }


def written_routes(*sources: Path) -> list[str]:
    """Every text in the sources that begins as a path does."""
    return sorted(
        {
            route
            for source in sources
            for route in ROUTE.findall(source.read_text())
            if route.isascii()
        }
    )


def routes_of(program: str) -> list[str]:
    if "ministack" in program:
        packages = next((ENVIRONMENTS / "cloud" / "lib").glob("python3*/site-packages/ministack"))
        return written_routes(
            packages / "app.py",
            packages / "core" / "router.py",
            *(REPO_ROOT / "localcloud").glob("*.py"),
        )
    service = REPO_ROOT / "localcloud" / "sagemaker_service"
    return [*written_routes(*service.rglob("*.py")), f"/endpoints/{ENDPOINT}/invocations"]


def operations_of(program: str) -> Iterator[Asked]:
    session = botocore.session.get_session()
    for service in sorted(
        ELSEWHERE if "sagemaker_service" in program else {*SERVICES, "events"} - ELSEWHERE
    ):
        model = session.get_service_model(service)
        for name in model.operation_names:
            target = f"{model.metadata.get('targetPrefix', service)}.{name}"
            yield (
                "POST",
                "/",
                {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.1"},
            )


def test_every_port_and_route_answers_403(hosted: LocalLab) -> None:
    ports = ports_of(hosted)
    # A model's container answers through a pipe and listens at no port.
    programs = ("ministack", "sagemaker_service --port", "inference_container")
    assert [sum(program in command for command in ports.values()) for program in programs] == [
        1,
        1,
        0,
    ], ports
    for port, program in ports.items():
        routes = ["/", *routes_of(program)]
        assert len(routes) > 5
        every: list[Asked] = [(method, route, {}) for route in routes for method in ("GET", "PUT")]
        every += [(method, "/", authorization("test")) for method in METHODS]
        assert answers_other_than_403(port, [*every, *operations_of(program)]) == []


def test_a_websocket_is_refused(hosted: LocalLab) -> None:
    upgrade = (
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )

    def look(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(upgrade.encode())
            return connection.recv(100)

    for port in ports_of(hosted):
        assert as_other_user(partial(look, port)).startswith(b"HTTP/1.1 403")


def test_a_presigned_url_and_an_assumed_role_open_the_places_of_their_maker(
    hosted: LocalLab,
) -> None:
    bucket = hosted.deployment().bucket
    key = "models/of-the-owner.tar.gz"
    url = hosted.client("s3").generate_presigned_url(
        "get_object", Params={"Bucket": bucket, "Key": key}
    )
    path = url.partition("127.0.0.1")[2].partition("/")[2]
    port = cloud.require_ports(hosted.home).aws
    assert answer_of(port, ("GET", f"/{path}", {}))[0] == 200
    forged = path.replace(read_access_key(hosted.home), "test")
    assert answers_other_than_403(port, [("GET", f"/{forged}", {})]) == []

    role = "arn:aws:iam::000000000000:role/any"
    given = hosted.client("sts").assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    session = boto3.Session(
        given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], "us-east-1"
    )
    assert session.client("s3", endpoint_url=f"http://127.0.0.1:{port}").head_object(
        Bucket=bucket, Key=key
    )


@NEEDS_ROOT
def test_another_user_can_open_no_file_and_no_environment(hosted: LocalLab) -> None:
    """The home is looked into from its own descriptor, because the folders above this one are
    closed too.
    """
    folder = hosted.home.folder
    names = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    names += [f"/proc/{process.pid}/environ" for process in processes_of(hosted)]
    home = os.open(folder, os.O_RDONLY)

    def look() -> list[str]:
        return [name for name in names if os.access(name, os.R_OK, dir_fd=home)]

    assert len(names) > 20
    assert as_other_user(look) == []
    os.close(home)


def test_the_home_and_all_in_it_are_their_owners_alone(hosted: LocalLab) -> None:
    folder = hosted.home.folder
    modes = {}
    for path in (folder, *folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # services write while the test reads
            modes[str(path)] = stat.filemode(path.lstat().st_mode)
    modes = {path: mode for path, mode in modes.items() if not mode.startswith("l")}
    assert {path: mode for path, mode in modes.items() if not mode.endswith("------")} == {}


def test_the_key_is_in_no_log_no_argument_and_no_document(hosted: LocalLab) -> None:
    """Besides its own file, the order that a supervisor reads and the CDK's cache have it."""
    folder = hosted.home.folder
    key = read_access_key(hosted.home)
    holding = [
        path for path in folder.rglob("*") if path.is_file() and key.encode() in path.read_bytes()
    ]
    names = {path.relative_to(folder).as_posix() for path in holding}
    assert [
        path
        for path in (Path.home() / ".cdk").rglob("*")
        if path.is_file() and key.encode() in path.read_bytes()
    ] == []
    expected = r"credentials\.json|cdk/cache/accounts_partitions\.json|sagemaker/.*/algo-\d+\.json"
    assert {name for name in names if not re.fullmatch(expected, name)} == set()
    assert "credentials.json" in names
    assert [process.pid for process in processes_of(hosted) if key in arguments_of(process)] == []
    status = hosted.traindyno("local", "status", "--format", "json")
    assert key not in status.output + status.errors
    assert hosted.traindyno("local", "env", "--format", "json").json()["AWS_ACCESS_KEY_ID"] == key
