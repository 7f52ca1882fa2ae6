"""MiniStack's answer to a request that its gate refuses, in the protocol of the service that is asked."""

import json
from collections.abc import Mapping
from xml.sax.saxutils import escape

from localcloud.gate import ERROR
from localcloud.throttling import LAMBDA_PATH


def refusal_answer(path: str, headers: Mapping[str, str], reason: str) -> tuple[dict[str, str], bytes]:
    """Its headers and its body."""
    if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        error = f"<Error><Type>Sender</Type><Code>AccessDenied</Code><Message>{escape(reason)}</Message></Error>"
        return {"content-type": "text/xml"}, f"<ErrorResponse>{error}</ErrorResponse>".encode()
    if "x-amz-target" in headers or path.startswith((LAMBDA_PATH, "/_")):
        body = json.dumps({"__type": ERROR, "message": reason}).encode()
        return {"content-type": "application/x-amz-json-1.1", "x-amzn-errortype": ERROR}, body
    xml = f"<Error><Code>AccessDenied</Code><Message>{escape(reason)}</Message></Error>"
    return {"content-type": "application/xml"}, xml.encode()
