"""Runs MiniStack with six changes; a program for MiniStack's own environment.

- MiniStack saves its state only when it is asked to end. Here it also saves it while it runs.
- It answers whoever reaches its port, and a Lambda function runs code as the person who started
  MiniStack. Here a filter before its ASGI application refuses web pages and programs without the
  access key.
- It starts a worker for each call of a burst, each as a new interpreter. Here their number is
  limited (``worker_pool.py``), and they are forked (``worker_processes.py``).
- It gives every exception of a function the same error type, but state machines retry and catch by
  the type.
- It takes several answers of one task.
- It waits for the answer of a task whose function has failed, and reads no time limit of a task
  from its input.
"""

import asyncio
import contextlib
import json
import logging
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack import app as ministack
from ministack.core import lambda_runtime
from ministack.core.persistence import save_state
from ministack.services import lambda_svc, stepfunctions, sts
from ministack.services.cloudformation import custom_resource

from localcloud.gate import find_page, find_refusal
from localcloud.ministack_answers import (
    DENIED,
    HttpAnswer,
    Throttle,
    WaitingTasks,
    error_answer,
    with_error_type,
)
from localcloud.worker_pool import WorkerPool
from localcloud.worker_processes import ForkedWorkers

KEY_VARIABLE = "AWS_ACCESS_KEY_ID"
# On AWS too, whoever has the URL of such an answer may send it once. Its last part is random.
CUSTOM_RESOURCE_PATH = "/_ministack/cfn-response/"
SAVE_PATH = "/_traindyno/save"
FAULTS_PATH = "/_traindyno/faults"
TRIES = 5
# A function's worker takes 30 MB. Most calls take a tenth of a second, so more of them would only
# wait for a core.
WORKERS_PER_CORE = 2
# A change after a save is lost if MiniStack is killed. Saving takes at most a twentieth of a
# core.
LEAST_PAUSE_SECONDS = 5.0
PAUSE_FACTOR = 20
LOG = logging.getLogger("traindyno")
Scope = Mapping[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class MiniStackGate:
    """Answers programs that name the local cloud's access key, or one of a role that such a program
    has assumed.
    """

    def __init__(self) -> None:
        self._access_key_id = os.environ[KEY_VARIABLE]

    def find_refusal(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
        path = scope["path"]
        is_answer = scope.get("method") == "PUT" and path.startswith(CUSTOM_RESOURCE_PATH)
        if is_answer and path.removeprefix(CUSTOM_RESOURCE_PATH) in custom_resource._pending:
            return find_page(headers.get)
        roles = [
            key for key, session in list(sts._sessions.items()) if not sts._session_expired(session)
        ]
        query = scope.get("query_string", b"").decode("latin-1")
        return find_refusal(headers.get, query, [self._access_key_id, *roles])


class Saver:
    """Saves the state of every service: after changes, regularly; when it is asked to; and at the
    end.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_changed = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._save_regularly, name="state", daemon=True).start()

    def note_change(self) -> None:
        self._has_changed.set()

    def save(self) -> None:
        self._has_changed.clear()
        with self._lock:
            for key, read_state in ministack._build_persistence_save_dict().items():
                try:
                    self._save_service(key, read_state)
                except Exception:  # the state of the other services is still saved
                    LOG.exception("the state of %s was not saved", key)

    def _save_service(self, key: str, read_state: Callable[[], Any]) -> None:
        for _ in range(TRIES):
            try:
                state = read_state()
            except RuntimeError:  # the state changed while it was read
                continue
            if state is not None:
                save_state(key, state)
            return
        self.note_change()

    def _save_regularly(self) -> None:
        while True:
            self._has_changed.wait()
            began = (
                time.thread_time()
            )  # CPU time of this thread: wall time grows when the machine is busy.
            self.save()
            time.sleep(max(LEAST_PAUSE_SECONDS, PAUSE_FACTOR * (time.thread_time() - began)))


class RequestFilter:
    """Passes the requests of the owner's programs to MiniStack, and refuses others."""

    def __init__(self, saver: Saver) -> None:
        self._saver = saver
        self._gate = MiniStackGate()
        self._throttle = Throttle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await ministack.app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = self._gate.find_refusal(scope, headers)
        if refusal is not None and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal is not None:
            await _send(send, error_answer(scope["path"], headers, DENIED, refusal))
        elif scope["type"] == "http" and scope["path"] in {SAVE_PATH, FAULTS_PATH}:
            await self._administer(scope["path"], receive, send)
        elif not scope["path"].startswith("/_") and (
            throttled := self._throttle.refuse(scope["path"], headers)
        ):
            await _read_whole(receive)
            await _send(send, throttled)
        else:
            try:
                await ministack.app(scope, receive, send)
            finally:
                # Note the change when it is complete: a save that starts earlier would miss it, and
                # there may be no later one.
                if scope.get("method") not in {"GET", "HEAD"}:
                    self._saver.note_change()

    async def _administer(self, path: str, receive: Receive, send: Send) -> None:
        body = await _read_whole(receive)
        if path == SAVE_PATH:
            await asyncio.to_thread(self._saver.save)
        else:
            faults = json.loads(body)
            self._throttle.put_in_force(float(faults["throttling_fraction"]), int(faults["seed"]))
        await _send(send, HttpAnswer(200, {"content-type": "application/json"}, b'{"done": true}'))


async def _read_whole(receive: Receive) -> bytes:
    """The whole body: an answer that is sent earlier ends the connection, and the client's next
    request fails.
    """
    body = b""
    has_more = True
    while has_more:
        message = await receive()
        body = body + message.get("body", b"")
        has_more = message.get("more_body", False)
    return body


async def _send(send: Send, answer: HttpAnswer) -> None:
    headers = {**answer.headers, "content-length": str(len(answer.body))}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw})
    await send({"type": "http.response.body", "body": answer.body})


def main() -> None:
    with contextlib.suppress(ValueError, OSError):  # many connections
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    _limit_worker_starts()
    if ForkedWorkers.is_possible():
        lambda_runtime.subprocess = SimpleNamespace(
            **{**vars(subprocess), "Popen": ForkedWorkers().start}
        )
    WaitingTasks(stepfunctions).install()
    execute = lambda_svc._execute_function_warm
    lambda_svc._execute_function_warm = lambda *arguments: with_error_type(execute(*arguments))
    # Functions get the access key: MiniStack gives them the account's number.
    credentials = lambda_runtime.execution_credentials
    key = {KEY_VARIABLE: os.environ[KEY_VARIABLE]}
    lambda_runtime.execution_credentials = lambda config: {**credentials(config), **key}
    saver = Saver()
    config = Config()
    config.bind = [f"{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}"]
    config.keep_alive_timeout = 75
    config.loglevel = "WARNING"
    asyncio.run(_serve(saver, config))


async def _serve(saver: Saver, config: Config) -> None:
    def end() -> None:
        # End immediately: kept-alive connections and waiting state machines would delay a graceful
        # end.
        saver.save()
        os._exit(0)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: threading.Thread(target=end).start())
    saver.start()
    await serve(RequestFilter(saver), config, shutdown_trigger=asyncio.Event().wait)


def _limit_worker_starts() -> None:
    def workers_of(name: str, config: Mapping[str, Any], qualifier: str) -> Sequence[Any]:
        with lambda_runtime._lock:
            return list(
                lambda_runtime._workers.get(lambda_runtime._worker_key(name, config, qualifier), ())
            )

    pool = WorkerPool(
        workers_of,
        lambda_svc.acquire_worker,
        lambda_svc.release_worker,
        most_starting=os.cpu_count() or 1,
        most_workers=WORKERS_PER_CORE * (os.cpu_count() or 1),
    )
    lambda_svc.acquire_worker = pool.acquire
    lambda_svc.release_worker = pool.release
