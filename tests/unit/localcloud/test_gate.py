"""The local cloud runs code for whoever is answered: programs with its access key, and no page of a
browser.
"""

import http.client
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import boto3
import pytest
from botocore.config import Config

from localcloud.gate import authorization, find_page, find_refusal, named_key
from localcloud.gated_server import GatedRequestHandler, GatedServer

KEY = "LOCAL0123456789ABCDEF"
OTHER_KEYS = [
    "",
    "test",
    "000000000000",
    KEY[:-1],
    f"{KEY}0",
    KEY.lower(),
    f" {KEY}",
    f"{KEY}\u00e9",
    "/",
    "*",
]
METHODS = ["DELETE", "FOO", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"]
HERE = {"host": "127.0.0.1:4566"}


def refusal_of(headers: Mapping[str, str], query: str = "") -> str | None:
    return find_refusal({**HERE, **headers}.get, query, [KEY])


def signed(key: str) -> dict[str, str]:
    scope = "20261123/us-east-1/s3/aws4_request"
    return {
        "authorization": (
            f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders=host, Signature=00"
        )
    }


@pytest.mark.parametrize("host", ["127.0.0.1:4566", "localhost:4566", "127.0.0.1", "localhost"])
def test_a_program_of_this_machine_is_no_page(host: str) -> None:
    assert find_page({"host": host}.get) is None


@pytest.mark.parametrize(
    "host",
    ["evil.example:4566", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::1]:80"],
)
def test_another_name_of_this_address_is_refused(host: str) -> None:
    assert "host" in str(refusal_of({**signed(KEY), "host": host}))


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:4566"])
def test_any_origin_is_refused(origin: str) -> None:
    assert "refuses requests from web pages" in str(refusal_of({**signed(KEY), "origin": origin}))


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_a_request_of_a_page_without_an_origin_is_refused(site: str) -> None:
    assert "other sites" in str(refusal_of({**signed(KEY), "sec-fetch-site": site}))


def test_an_address_typed_by_a_person_is_no_page() -> None:
    assert find_page({**HERE, "sec-fetch-site": "none"}.get) is None


def test_the_key_is_found_wherever_aws_clients_name_it() -> None:
    assert refusal_of(signed(KEY)) is None
    assert refusal_of({"authorization": authorization(KEY)["Authorization"]}) is None
    assert (
        refusal_of(
            {}, f"X-Amz-Credential={quote(f'{KEY}/20261123/us-east-1/s3/aws4_request', safe='')}"
        )
        is None
    )


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_the_key_of_a_presigned_url_is_found(version: str) -> None:
    session = boto3.Session(
        aws_access_key_id=KEY, aws_secret_access_key="x", region_name="us-east-1"
    )
    client = session.client(
        "s3", endpoint_url="http://127.0.0.1:1", config=Config(signature_version=version)
    )
    url = client.generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "k"})
    assert refusal_of({}, url.partition("?")[2]) is None


@pytest.mark.parametrize("key", OTHER_KEYS)
def test_another_key_is_refused_wherever_it_stands(key: str) -> None:
    assert "access key" in str(refusal_of(signed(key)))
    for name in ("AWSAccessKeyId", "X-Amz-Credential"):
        assert "access key" in str(refusal_of({}, f"{name}={quote(key)}%2F20261123"))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": KEY},
        {"authorization": f"Bearer {KEY}"},
        {"authorization": f"AWS4-HMAC-SHA256 SignedHeaders={KEY}/"},
        {"x-amz-security-token": KEY},
        {"cookie": f"key={KEY}"},
        {"x-api-key": KEY},
    ],
)
def test_a_key_in_another_place_counts_for_nothing(headers: dict[str, str]) -> None:
    assert "names no access key" in str(refusal_of(headers))


def test_the_header_decides_when_the_url_names_a_key_too() -> None:
    assert named_key(signed("other")["authorization"], f"X-Amz-Credential={KEY}") == "other"


def test_a_server_without_a_key_answers_nobody() -> None:
    for keys in ([], [""]):
        assert find_refusal({**HERE, **signed("")}.get, "", keys) is not None
        assert find_refusal(HERE.get, "X-Amz-Credential=%2F20261123", keys) is not None


class Handler(GatedRequestHandler):
    """Answers every method that there is a test for."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def _answer(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


for verb in METHODS:
    setattr(Handler, f"do_{verb}", Handler._answer)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = GatedServer(0, Handler, access_key_id=KEY)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    ).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def status_of(port: int, method: str, headers: Mapping[str, str], path: str = "/") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, b"{}", dict(headers))
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("method", METHODS)
def test_a_server_refuses_every_method_before_it_looks_it_up(port: int, method: str) -> None:
    assert status_of(port, method, authorization(KEY)) == 200
    assert status_of(port, method, {}) == 403
    assert status_of(port, method, authorization("test")) == 403
    assert status_of(port, method, {**authorization(KEY), "Origin": "null"}) == 403


@pytest.mark.parametrize(
    "begin", [b"GET /health\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n", b"POST //[ HTTP/1.1\r\n\r\n"]
)
def test_an_odd_request_is_refused_too(port: int, begin: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(begin)
        assert b"127.0.0.1 and localhost only" in connection.makefile("rb").read()


def test_the_body_of_a_refused_request_is_not_waited_for(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(
            b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\n"
        )
        assert connection.recv(10_000).startswith(b"HTTP/1.1 403")
