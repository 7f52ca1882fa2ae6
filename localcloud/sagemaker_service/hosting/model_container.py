"""Runs a model's container as a process of this machine: its folder, its start, its requests and its end."""

import http.client
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localcloud.gate import KEY_VARIABLE, authorization
from localcloud.loopback import LOOPBACK, free_port
from localcloud.sagemaker_service.api_error import validation_error
from localcloud.sagemaker_service.host.host_processes import HostOrder, HostProcesses
from localcloud.sagemaker_service.host.job_failure import last_lines
from localcloud.sagemaker_service.host.local_images import find_local_image
from localcloud.sagemaker_service.host.process_environment import INHERITED, local_credentials
from localcloud.sagemaker_service.host.stray_processes import MARK_VARIABLE, end_stray_processes
from localcloud.sagemaker_service.hosting import inference_container
from localcloud.sagemaker_service.hosting.hosting import HostedModel
from localcloud.sagemaker_service.service_health import error_text
from localcloud.sagemaker_service.settings import ServiceSettings
from localcloud.sagemaker_service.storage.log_shipping import LogClient, LogShipping
from localcloud.sagemaker_service.storage.s3_transfer import S3Transfer, split_uri, unpack_data

HOST = "algo-1"
START_SECONDS = 300.0
ANSWER_SECONDS = 60.0  # SageMaker's own limit on one invocation
LOOK_AGAIN_SECONDS = 0.1
LAST_LINES = 12


class ContainerFailed(Exception):
    """The container ended, or did not answer its health check in time. ``last_lines`` are those of its log."""

    def __init__(self, log: Path) -> None:
        self.last_lines = "\n".join(last_lines(log, LAST_LINES))
        super().__init__(self.last_lines)


class StartInterrupted(Exception):
    """The container is not needed any more: its endpoint is deleted, its job is stopped, or the service ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDestination:
    """A log group in CloudWatch Logs, and the beginning of the stream's name."""

    group: str
    stream: str


class ModelContainer:
    """A container in ``folder``. ``close`` ends all its processes."""

    def __init__(
        self,
        model: HostedModel,
        folder: Path,
        *,
        transfer: S3Transfer,
        logs: LogClient,
        settings: ServiceSettings,
        log_to: LogDestination,
    ) -> None:
        self._model = model
        self.folder = folder
        self._transfer = transfer
        self._settings = settings
        self._log = folder / HOST / "log.txt"
        # The mark is the whole path, because an endpoint and a transform job may have the same name.
        self._mark = str(folder)
        self._shipping = LogShipping(
            logs, log_to.stream, {HOST: self._log}, settings.checkpoint_sync_seconds, log_group=log_to.group
        )
        self._port = free_port()
        self._authorization = authorization(settings.access_key_id)
        self._processes: HostProcesses | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, is_ending: Callable[[], bool]) -> None:
        """Returns when the health check answers.

        Raises ContainerFailed, StartInterrupted, or DataUnavailable if S3 does not have the model.
        """
        container = self._model.request["PrimaryContainer"]
        shutil.rmtree(self.folder, ignore_errors=True)
        model_folder = self.folder / HOST / "ml" / "model"
        model_folder.mkdir(parents=True)
        self._download(container["ModelDataUrl"], model_folder)
        image = find_local_image(container["Image"], self._settings)
        command = [image.python, "-P", inference_container.__file__, "--model", str(model_folder)]
        order = HostOrder(
            host=HOST,
            command=[*command, "--port", str(self._port)],
            environment=self._environment(container.get("Environment", {}), model_folder) | dict(image.variables),
            folder=model_folder,
            root=model_folder.parent,
            log=self._log,
            cores=self._settings.cores,
        )
        self._processes = HostProcesses([order], order_folder=self.folder, grace_seconds=1.0)
        self._shipping.start()
        self._await_health(is_ending)

    def has_ended(self) -> bool:
        return self._processes is None or self._processes.wait(0) is not None

    def invoke(self, body: bytes, headers: Mapping[str, str]) -> Invocation:
        """Raises OSError if the container does not answer within a minute."""
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=ANSWER_SECONDS)
        try:
            connection.request("POST", "/invocations", body, {**headers, **self._authorization})
            answer = connection.getresponse()
            content_type = answer.getheader("Content-Type") or "application/octet-stream"
            return Invocation(status=answer.status, content_type=content_type, body=answer.read())
        except http.client.HTTPException as error:
            raise ConnectionError(f"the container's answer was cut off: {error_text(error)}") from error
        finally:
            connection.close()

    def interrupt(self) -> None:
        """Ends the container's processes; a request that waits for its answer raises OSError. Not for a closed one."""
        if self._processes is not None:
            self._processes.stop()

    def failure(self) -> ContainerFailed:
        return ContainerFailed(self._log)

    def close(self) -> None:
        if self._processes is not None:
            self._processes.stop()
            self._processes.close()
            self._shipping.finish()
        end_stray_processes(self._mark)
        if not self._settings.keep_job_folders:
            shutil.rmtree(self.folder / HOST / "ml", ignore_errors=True)

    def _download(self, uri: str, folder: Path) -> None:
        archive = self.folder / "model.tar.gz"
        self._transfer.download(*split_uri(uri), archive)
        unpack_data(archive, folder)
        archive.unlink()

    def _environment(self, own: Mapping[str, Any], model_folder: Path) -> dict[str, str]:
        environment = {name: value for name, value in os.environ.items() if name in INHERITED}
        return environment | {
            **local_credentials(self._settings),
            "AWS_REGION": self._settings.region,
            "AWS_ENDPOINT_URL": self._settings.aws_endpoint,
            "SM_MODEL_DIR": str(model_folder),
            "OMP_NUM_THREADS": str(len(self._settings.cores)),
            "PYTHONUNBUFFERED": "1",
            MARK_VARIABLE: self._mark,
            **own,
            KEY_VARIABLE: self._settings.access_key_id,
        }

    def _await_health(self, is_ending: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if is_ending():
                raise StartInterrupted
            if self.has_ended() or time.monotonic() > deadline:
                raise self.failure()
            time.sleep(LOOK_AGAIN_SECONDS)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=2)
        try:
            connection.request("GET", "/ping", headers=self._authorization)
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


def check_image(model: HostedModel) -> None:
    """Raises ApiError for a model that this machine can't serve."""
    container = model.request.get("PrimaryContainer") or {}
    if not container.get("Image") or not container.get("ModelDataUrl"):
        raise validation_error(
            f"model {model.name} lacks Image or ModelDataUrl; this local service serves a PrimaryContainer with both"
        )
