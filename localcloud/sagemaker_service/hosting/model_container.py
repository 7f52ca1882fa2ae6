"""Runs a model's container as a process of this machine: its folder, its start, its requests and its end."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from localcloud.sagemaker_service.host.job_ends import last_lines
from localcloud.sagemaker_service.host.process_environment import INHERITED, find_local_image, local_credentials
from localcloud.sagemaker_service.hosting import inference_container
from localcloud.sagemaker_service.settings import ServiceSettings
from localcloud.sagemaker_service.storage.log_shipping import LogClient, LogShipping
from localcloud.sagemaker_service.storage.s3_transfer import S3Transfer, split_uri, unpack_data

START_SECONDS = 300.0
ANSWER_SECONDS = 60.0  # SageMaker's own limit on one invocation
LOOK_AGAIN_SECONDS = 0.1
LAST_LINES = 12


class ContainerFailed(Exception):
    """The container ended, or did not answer in time. The text is the end of its log."""


class ModelContainer:
    """A container in ``folder``, as CreateModel's ``definition`` describes it."""

    def __init__(
        self, definition: Mapping[str, Any], folder: Path, *, transfer: S3Transfer, settings: ServiceSettings
    ) -> None:
        self._definition, self._folder = definition, folder
        self._transfer, self._settings = transfer, settings
        self._log = folder / "log.txt"
        self._turn = threading.Lock()
        self._shipping: LogShipping | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, is_ending: Callable[[], bool], logs: LogClient, *, log_group: str, stream: str) -> None:
        """Returns when the model is loaded, or not needed any more. Raises ContainerFailed, or DataUnavailable."""
        shutil.rmtree(self._folder, ignore_errors=True)
        model = self._folder / "model"
        model.mkdir(parents=True)
        archive = self._folder / "model.tar.gz"
        self._transfer.download(*split_uri(self._definition["ModelDataUrl"]), archive)
        unpack_data(archive, model)
        archive.unlink()
        image = find_local_image(self._definition["Image"], self._settings)
        environment = {
            **{name: value for name, value in os.environ.items() if name in INHERITED},
            **local_credentials(self._settings),
            "AWS_REGION": self._settings.region,
            "AWS_ENDPOINT_URL": self._settings.aws_endpoint,
            "OMP_NUM_THREADS": str(len(self._settings.cores)),
            "PYTHONUNBUFFERED": "1",
            **self._definition.get("Environment", {}),
            **image.variables,
        }
        command = [image.python, "-P", inference_container.__file__, str(model)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, cwd=model,
                start_new_session=True,
            )  # fmt: skip
        seconds = self._settings.checkpoint_sync_seconds
        self._shipping = LogShipping(logs, stream, {"algo-1": self._log}, seconds, log_group=log_group)
        self._shipping.start()
        self._read(START_SECONDS, is_ending)

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def invoke(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """The status and the answer. Raises ContainerFailed. One request is answered at a time."""
        content_type, accept = (headers.get(name, "application/json") for name in ("Content-Type", "Accept"))
        request = {"body": body.decode(errors="replace"), "content_type": content_type, "accept": accept}
        with self._turn:
            if self._process is None or self._process.stdin is None:
                raise ContainerFailed("the container has ended")
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            except OSError as error:
                raise ContainerFailed(f"the container has ended: {error}") from error
            answer = json.loads(self._read(ANSWER_SECONDS, self.has_ended))
            return answer["status"], answer["body"].encode()

    def close(self) -> None:
        """Ends all its processes."""
        self._kill()
        if self._shipping is not None:
            self._shipping.finish()
        if not self._settings.keep_job_folders:
            shutil.rmtree(self._folder / "model", ignore_errors=True)

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _read(self, seconds: float, is_ending: Callable[[], bool]) -> bytes:
        """The next line of the container's answers; the first says that the model is loaded."""
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        while not select.select([self._process.stdout], [], [], LOOK_AGAIN_SECONDS)[0]:
            if is_ending() or time.monotonic() > deadline:
                break
        else:
            line = self._process.stdout.readline()
            if line:
                return line
        self._kill()  # a late answer would be taken for that of the next request
        raise ContainerFailed("\n".join(last_lines(self._log, LAST_LINES)))
