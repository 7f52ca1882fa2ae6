"""The answer of a custom resource to CloudFormation: a document that is sent by PUT to the URL in
the request.
"""

import json
import urllib.request
from collections.abc import Mapping
from typing import Any

TIMEOUT_SECONDS = 30


def answer_cloudformation(event: Mapping[str, Any], *, refusal: str | None) -> None:
    """Answer a request of CloudFormation.

    The resource keeps one identity for its whole life, so that no update ever replaces it.
    ``refusal`` is the reason why the request fails, if it does.
    """
    document = {
        "Status": "FAILED" if refusal else "SUCCESS",
        "Reason": refusal or "",
        "PhysicalResourceId": event.get("PhysicalResourceId")
        or f"{event['LogicalResourceId']}-of-the-lab",
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    # The URL is signed for a request without a content type.
    request = urllib.request.Request(
        event["ResponseURL"],
        data=json.dumps(document).encode(),
        method="PUT",
        headers={"Content-Type": ""},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
        pass
