"""Serves AWS's JSON 1.1 protocol, beside the service's own paths, over HTTP on loopback."""

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import unquote

from botocore.model import ServiceModel

from localcloud.gated_server import AWS_JSON, GatedRequestHandler, GatedServer, read_length
from localcloud.sagemaker_service.api.request_check import check_request
from localcloud.sagemaker_service.api_error import ApiError, Operation
from localcloud.sagemaker_service.service_health import Activity
from traindyno.core.documents.extent import MOST_DEPTH, excess_of

JSON = "application/json"
MOST_BODY_BYTES = 4 * 1024 * 1024
LOG = logging.getLogger(__name__)
MOST_INVOCATION_BYTES = 6 * 1024 * 1024
INVOCATION = re.compile(r"/endpoints/(?P<name>[^/]+)/invocations")
Invoke = Callable[[str, bytes], bytes]
AdministrationAnswer = Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Api:
    """One AWS service: its botocore model and the operations that answer it."""

    model: ServiceModel
    operations: Mapping[str, Operation]
    extra_values: Mapping[str, frozenset[str]]

    def answer(self, name: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        operation = self.operations.get(name)
        if operation is None:
            offered = ", ".join(sorted(self.operations))
            raise ApiError(
                "UnknownOperationException",
                f"{name} is not offered by this local service; it offers {offered}",
            )
        check_request(self.model.operation_model(name), request, self.extra_values)
        return operation(_without_nulls(request))


def _without_nulls(value: Any) -> Any:
    """For AWS, a member that is null is absent."""
    if isinstance(value, Mapping):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


class LoopbackServer(GatedServer):
    request_queue_size = 256

    def __init__(
        self,
        port: int,
        apis: list[Api],
        administration: AdministrationAnswer,
        before_each: Callable[[], None],
        *,
        invoke: Invoke,
        activity: Activity,
        now_seconds: Callable[[], float],
        access_key_id: str,
    ) -> None:
        self.activity = activity
        self.now_seconds = now_seconds
        self.apis = {api.model.metadata["targetPrefix"]: api for api in apis}
        self.administration = administration
        self.before_each = before_each
        self._invoke = invoke
        super().__init__(port, RequestHandler, access_key_id=access_key_id)

    def answer(self, target: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        prefix, _, operation = target.partition(".")
        if prefix not in self.apis:
            raise ApiError(
                "UnknownOperationException",
                f"{target!r} is unknown; the local service accepts {', '.join(self.apis)}",
            )
        with self.activity.busy():
            self.before_each()
            return self.apis[prefix].answer(operation, request)

    def invoke(self, endpoint: str, body: bytes) -> bytes:
        """Answers InvokeEndpoint of ``sagemaker-runtime``, which has a path instead of a target."""
        self.before_each()
        return self._invoke(endpoint, body)


class RequestHandler(GatedRequestHandler):
    server: LoopbackServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize: ClassVar[int] = -1
    timeout = 120

    def do_POST(self) -> None:
        invocation = INVOCATION.fullmatch(unquote(self.path))
        body = self._read_body(MOST_INVOCATION_BYTES if invocation else MOST_BODY_BYTES)
        if body is None:
            return
        if invocation:
            self._respond(lambda: self.server.invoke(invocation["name"], body))
            return
        wanted = JSON if self.path.startswith("/_local/") else AWS_JSON
        if self.headers.get_content_type() != wanted:
            content_type = self.headers.get("Content-Type")
            refusal = f"Content-Type {content_type} is not accepted, expected {wanted}"
            self.send_json(415, {"message": f"{self.path}: {refusal}"})
        elif wanted == JSON:
            self._respond(
                lambda: self.server.administration("POST", self.path, read_document(body))
            )
        else:
            self._respond(
                lambda: self.server.answer(
                    self.headers.get("X-Amz-Target", ""), read_document(body)
                )
            )

    def do_GET(self) -> None:
        self._respond(lambda: self.server.administration("GET", self.path, {}))

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The ``Date`` of an answer has the time of the jobs' clock: callers compute a simulated
        job's age from it.
        """
        return super().date_time_string(
            self.server.now_seconds() if timestamp is None else timestamp
        )

    def log_message(self, format: str, *arguments: Any) -> None:
        LOG.debug(format, *arguments)

    def _read_body(self, most_bytes: int) -> bytes | None:
        try:
            size = read_length(self.headers.get("Content-Length"))
        except ValueError as error:
            self.close_connection = True
            self._send_error(ApiError("SerializationException", str(error)))
            return None
        if size > most_bytes:
            self.close_connection = True
            self.send_json(413, {"message": f"{size} bytes; at most {most_bytes} are accepted"})
            return None
        return self.rfile.read(size)

    def _respond(self, operation: Callable[[], Mapping[str, Any] | bytes]) -> None:
        try:
            answer = operation()
        except ApiError as error:
            self._send_error(error)
        except Exception:  # a fault of this service: the caller still gets an answer, as from AWS
            LOG.exception("%s failed", self.headers.get("X-Amz-Target") or self.path)
            self.send_json(
                500, {"message": "see the local service's log"}, error_code="InternalFailure"
            )
            raise
        else:
            if isinstance(answer, bytes):
                self.send_whole(200, answer, self.headers.get("Accept") or JSON)
            else:
                self.send_json(200, answer)

    def _send_error(self, error: ApiError) -> None:
        self.send_json(
            error.http_status, {"message": error.message, **error.members}, error_code=error.code
        )


def read_document(body: bytes) -> dict[str, Any]:
    """The JSON object of a request's body; raises ApiError."""
    try:
        document = json.loads(body or b"{}")
    except ValueError as error:
        raise ApiError("SerializationException", f"the body is not valid JSON: {error}") from error
    except (
        RecursionError
    ) as error:  # the depth at which json raises it differs between versions of Python
        raise ApiError(
            "SerializationException", f"the body: expected at most {MOST_DEPTH} levels, got more"
        ) from error
    if not isinstance(document, dict):
        raise ApiError("SerializationException", "the body is not a JSON object")
    excess = excess_of(document)
    if excess is not None:
        raise ApiError("SerializationException", f"the body: {excess}")
    return document
