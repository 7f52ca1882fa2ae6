"""An HTTP server on loopback that answers only requests that pass the gate."""

import json
import re
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from localcloud.gate import ERROR, find_refusal
from localcloud.ports import LOOPBACK

AWS_JSON = "application/x-amz-json-1.1"


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


def read_length(header: str | None) -> int:
    """The bytes of a request's body; raises ValueError.

    To read -1 bytes would wait until the client is gone.
    """
    if not re.fullmatch("[0-9]{0,18}", header or ""):
        raise ValueError(f"Content-Length: got {header!r:.80}, expected a number of bytes")
    return int(header or 0)
