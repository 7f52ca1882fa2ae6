"""Replaces AWS's inference container on this machine. A program of its own, in the environment of the model's image.

It loads ``code/inference.py`` of the model's folder as the container's toolkit does, and serves it over HTTP at
``/ping`` and ``/invocations``, to programs that have the local cloud's access key. If the model doesn't load, the
program ends with the traceback.
"""

import argparse
import gc
import importlib.util
import os
import sys
import threading
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

JSON = "application/json"


def load_module(name: str, source: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, source)
    if spec is None or spec.loader is None:
        sys.exit(f"{source} can't be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from localcloud import gate
else:
    # Loaded as a file: with this repository on its path, a model could import modules that its image on AWS lacks.
    gate = load_module("gate", Path(__file__).resolve().parents[2] / "gate.py")


class ModelServer(gate.GatedServer):
    def __init__(self, port: int, handler: ModuleType, model: Any) -> None:
        self.handler = handler
        self.model = model
        # The toolkit has a worker process for each core or device. Here one process answers one request at a time.
        self.turn = threading.Lock()
        super().__init__(port, ModelRequestHandler, access_key_id=os.environ[gate.KEY_VARIABLE])

    def answer(self, body: bytes, content_type: str, accept: str) -> bytes:
        with self.turn:
            data = self.handler.input_fn(body, content_type)
            made = self.handler.output_fn(self.handler.predict_fn(data, self.model), accept)
        return made if isinstance(made, bytes) else str(made).encode()


class ModelRequestHandler(gate.GatedRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(200 if self.path == "/ping" else 404, b"")

    def do_POST(self) -> None:
        try:
            length = gate.read_length(self.headers.get("Content-Length"))
        except ValueError as error:
            self.close_connection = True
            self._send(400, str(error).encode())
            return
        body = self.rfile.read(length)
        accept = self.headers.get("Accept") or JSON
        try:
            answer = self.server.answer(body, self.headers.get("Content-Type") or JSON, accept)
        except ValueError as error:
            self._send(400, str(error).encode())
        except Exception as error:  # noqa: BLE001 -- one request that fails must not end the server
            traceback.print_exc()
            self._send(500, f"{type(error).__name__}: {error}".encode())
        else:
            self._send(200, answer, accept)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def _send(self, status: int, body: bytes, content_type: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def load_handler(model_folder: Path) -> ModuleType:
    source = model_folder / "code" / "inference.py"
    if not source.is_file():
        sys.exit(f"{source} was not found: the model's archive has no inference handler")
    sys.path.insert(0, str(source.parent))
    return load_module("inference", source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    asked = parser.parse_args()
    gc.disable()  # Collections take a fifth of the time that a handler's imports take.
    handler = load_handler(asked.model)
    gc.freeze()
    gc.enable()
    server = ModelServer(asked.port, handler, handler.model_fn(str(asked.model)))
    print(f"serving {asked.model} on port {asked.port}", flush=True)  # noqa: T201 -- the container's log
    server.serve_forever(poll_interval=0.5)


if __name__ == "__main__":
    main()
