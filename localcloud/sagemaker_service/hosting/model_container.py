"""Runs a model's container as a process of this machine."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localcloud.environment import REGION
from localcloud.sagemaker_service.host.job_ends import last_lines
from localcloud.sagemaker_service.host.process_environment import (
    INHERITED,
    find_local_image,
    local_credentials,
)
from localcloud.sagemaker_service.hosting import inference_container
from localcloud.sagemaker_service.settings import ServiceSettings
from localcloud.sagemaker_service.storage.s3_transfer import S3Transfer, split_uri, unpack_data

START_SECONDS = 300.0
ANSWER_SECONDS = 60.0  # SageMaker's own limit on one invocation
LAST_LINES = 12


class ContainerFailed(Exception):
    """The container ended, or did not answer in time. The text is the end of its log."""


class ModelContainer:
    """A container in ``folder``, as CreateModel's ``definition`` describes it."""

    def __init__(
        self, definition: Mapping[str, Any], folder: Path, *, settings: ServiceSettings
    ) -> None:
        self._definition = definition
        self._folder = folder
        self._settings = settings
        self._log = folder / "log.txt"
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, transfer: S3Transfer) -> None:
        """Returns when the model is loaded. Raises ContainerFailed, or DataUnavailable."""
        shutil.rmtree(self._folder, ignore_errors=True)
        model = self._folder / "model"
        archive = self._folder / "model.tar.gz"
        model.mkdir(parents=True)
        unpack_data(transfer.download(*split_uri(self._definition["ModelDataUrl"]), archive), model)
        archive.unlink()
        image = find_local_image(self._definition["Image"], self._settings)
        environment = {
            **{name: value for name, value in os.environ.items() if name in INHERITED},
            **local_credentials(self._settings),
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self._settings.aws_endpoint,
            "OMP_NUM_THREADS": str(len(self._settings.cores)),
            "PYTHONUNBUFFERED": "1",
            **self._definition.get("Environment", {}),
            **image.variables,
        }
        command = [image.python, "-P", inference_container.__file__, str(model)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=model,
                start_new_session=True,
            )
        self._read(self._process, START_SECONDS)

    def invoke(self, body: bytes) -> tuple[int, str]:
        """The status and the answer. Raises ContainerFailed. One request is answered at a time."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        with self._turn:
            try:
                process.stdin.write(json.dumps(body.decode(errors="replace")).encode() + b"\n")
                process.stdin.flush()
            except OSError as error:
                raise ContainerFailed(f"the container has ended: {error}") from error
            status, answer = json.loads(self._read(process, ANSWER_SECONDS))
        return status, answer

    def close(self) -> None:
        """Ends all its processes."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._folder / "model", ignore_errors=True)

    def _read(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        """The next line of the container's answers; the first says that the model is loaded."""
        assert process.stdout is not None
        has_line = select.select([process.stdout], [], [], seconds)[
            0
        ]  # also at the end of the process
        line = process.stdout.readline() if has_line else b""
        if not line:
            self.close()  # a late answer would be taken for the answer of the next request
            raise ContainerFailed("\n".join(last_lines(self._log, LAST_LINES)))
        return line
