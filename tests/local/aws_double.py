"""The AWS services that the local SageMaker service calls, in memory behind HTTP: S3, EventBridge,
Lambda and logs.

The service under test is the real one. It calls this double with real boto3 clients.
"""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

FUNCTION_ARN = "arn:aws:lambda:us-east-1:000000000000:function:finish"


class AwsDouble:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.patterns: dict[str, dict[str, Any]] = {}
        self.invocations: list[dict[str, Any]] = []
        self.log_lines: list[tuple[str, str]] = []
        self.logs_came_at: dict[str, float] = {}
        self.failing_invocations = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer_json(self, target: str, request: dict[str, Any]) -> dict[str, Any]:
        match target.partition(".")[2]:
            case "ListRules":
                return {
                    "Rules": [
                        {"Name": name, "EventPattern": json.dumps(pattern), "State": "ENABLED"}
                        for name, pattern in self.patterns.items()
                    ]
                }
            case "ListTargetsByRule":
                return {"Targets": [{"Id": "1", "Arn": FUNCTION_ARN}]}
            case "PutLogEvents":
                self.logs_came_at[request["logStreamName"]] = time.time()
                self.log_lines += [
                    (request["logStreamName"], event["message"]) for event in request["logEvents"]
                ]
        return {}

    def listing(self, bucket: str, prefix: str) -> str:
        keys = sorted(
            name.partition("/")[2] for name in self.objects if name.startswith(f"{bucket}/{prefix}")
        )
        contents = "".join(
            f'<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[f"{bucket}/{key}"])}</Size><ETag>"e"</ETag></Contents>'
            for key in keys
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"


def _handler(double: AwsDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self._body()
            path = unquote(urlsplit(self.path).path)
            if path.endswith("/invocations"):
                if double.failing_invocations:
                    double.failing_invocations -= 1
                    self._send(500, b"{}")
                    return
                double.invocations.append(json.loads(body))
                self._send(202, b"")
                return
            document = double.answer_json(self.headers["X-Amz-Target"], json.loads(body))
            self._send(200, json.dumps(document).encode())

        def do_PUT(self) -> None:
            double.objects[self._name()] = self._body()
            self._send(200, b"")

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            if "list-type" in query:
                self._send(
                    200,
                    double.listing(self._name().strip("/"), query.get("prefix", [""])[0]).encode(),
                )
            elif (body := double.objects.get(self._name())) is None:
                self._send(
                    404,
                    b"<Error><Code>NoSuchKey</Code>"
                    b"<Message>The key does not exist.</Message></Error>",
                )
            else:
                self._send(200, body)

        def do_HEAD(self) -> None:
            body = double.objects.get(self._name())
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def _name(self) -> str:
            return unquote(urlsplit(self.path).path).lstrip("/")

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
