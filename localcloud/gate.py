"""Decides which requests the servers of a local cloud answer: those of programs that have its
access key.

Every user of the machine can connect to a port of 127.0.0.1, and whoever is answered there runs
code as the person who started the local cloud.
"""

import hmac
import json
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

LOOPBACK = "127.0.0.1"
LOOPBACK_NAMES = frozenset({LOOPBACK, "localhost"})
ERROR = "AccessDeniedException"
AWS_JSON = "application/x-amz-json-1.1"
SIGNED = re.compile(r"AWS4-HMAC-SHA256 +Credential=([^/, ]+)")
# The parameters of presigned URLs: signature versions 4 and 2. Only the first of them is
# "key/date/region/service/…".
PRESIGNED = ("X-Amz-Credential", "AWSAccessKeyId")
ADVICE = 'only its owner may use it, and gets the key with: eval "$(traindyno local env)"'
ReadHeader = Callable[[str], str | None]


def free_port() -> int:
    """The port is free now; another program may take it before it is used."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def find_refusal(header: ReadHeader, query: str, keys: Iterable[str]) -> str | None:
    """The reason why a request is refused; None if a program that has one of the ``keys`` sent it.

    ``header`` reads a header by its name in lower case, ``query`` is the URL's part after the
    question mark.
    """
    return find_page(header) or find_stranger(header, query, keys)


def find_page(header: ReadHeader) -> str | None:
    """The reason why a request is refused as that of a web page.

    A browser names the page's origin, or states that the request is cross-site. A page whose host
    name resolves to this address (DNS rebinding) is recognised by the Host header.
    """
    host = header("host") or ""
    if (host.rpartition(":")[0] or host) not in LOOPBACK_NAMES:
        return f"host {host!r}: the local cloud answers {' and '.join(sorted(LOOPBACK_NAMES))} only"
    origin = header("origin")
    if origin is not None:
        return f"origin {origin!r}: the local cloud refuses requests from web pages"
    if header("sec-fetch-site") not in {None, "none", "same-origin"}:
        return "the local cloud refuses requests from web pages of other sites"
    return None


def find_stranger(header: ReadHeader, query: str, keys: Iterable[str]) -> str | None:
    """The reason why a request is refused that names no access key of the local cloud."""
    named = named_key(header("authorization") or "", query)
    if named is None:
        return f"the request names no access key of this local cloud: {ADVICE}"
    # Each comparison takes the same time wherever the two differ; an empty key would open a server
    # that was given none.
    matches = [hmac.compare_digest(named.encode(), key.encode()) for key in keys if key]
    return (
        None
        if any(matches)
        else f"the request's access key is not that of this local cloud: {ADVICE}"
    )


def named_key(authorization: str, query: str) -> str | None:
    """The access key ID that a request is signed with, in its header or in a presigned URL."""
    signed = SIGNED.match(authorization)
    if signed:
        return signed[1]
    parameters = parse_qs(query)
    return next(
        (parameters[name][0].partition("/")[0] for name in PRESIGNED if name in parameters), None
    )


def authorization(access_key_id: str) -> dict[str, str]:
    """The header with which a program without an AWS client passes the gate: no server checks the
    signature.
    """
    return {"Authorization": f"AWS4-HMAC-SHA256 Credential={access_key_id}/"}


def read_length(header: str | None) -> int:
    """The bytes of a request's body; raises ValueError.

    To read -1 bytes would wait until the client is gone.
    """
    if not re.fullmatch("[0-9]{0,18}", header or ""):
        raise ValueError(f"Content-Length: got {header!r:.80}, expected a number of bytes")
    return int(header or 0)


class GatedServer(ThreadingHTTPServer):
    """Listens on loopback, with a thread for each connection."""

    daemon_threads = True

    def __init__(
        self, port: int, handler: type["GatedRequestHandler"], *, access_key_id: str
    ) -> None:
        self.access_key_id = access_key_id
        super().__init__((LOOPBACK, port), handler)


class GatedRequestHandler(BaseHTTPRequestHandler):
    """Refuses a request before its body is read and before its method is looked up."""

    server: GatedServer

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        refusal = find_refusal(
            self.headers.get, self.path.partition("?")[2], [self.server.access_key_id]
        )
        if refusal is None:
            return True
        self.close_connection = True  # the body is still in the connection
        self.send_json(403, {"message": refusal}, error_code=ERROR)
        return False

    def send_json(self, status: int, document: Mapping[str, Any], *, error_code: str = "") -> None:
        error = {"__type": error_code} if error_code else {}
        self.send_whole(
            status,
            json.dumps({**error, **document}).encode(),
            AWS_JSON,
            **{"x-amzn-ErrorType": error_code},
        )

    def send_whole(self, status: int, body: bytes, content_type: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": content_type,
            "Content-Length": str(len(body)),
            **headers,
        }.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
