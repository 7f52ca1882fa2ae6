"""Runs one job on this machine, from its first download to its last upload."""

import logging
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from localcloud.sagemaker_service.clock import SystemClock
from localcloud.sagemaker_service.host.container_tree import (
    OUTSIDE_CONTAINER_ROOT,
    HostTree,
    is_container_path,
    make_host_tree,
    write_configs,
)
from localcloud.sagemaker_service.host.host_processes import end_stray_processes, process_mark
from localcloud.sagemaker_service.host.host_training import (
    ServiceEnding,
    TrainingEnd,
    host_orders,
    train,
)
from localcloud.sagemaker_service.host.job_ends import (
    PAUSE_SECONDS,
    SpotInterruption,
    UploadTime,
    algorithm_error,
    is_done_before,
    plan_interruptions,
)
from localcloud.sagemaker_service.host.job_files import (
    count_steps,
    download_channels,
    download_source,
    find_step_logs,
    remove_inputs,
    upload_outputs,
)
from localcloud.sagemaker_service.host.process_environment import (
    LocalImage,
    find_local_image,
    pip_environment,
)
from localcloud.sagemaker_service.host.source_requirements import (
    RequirementsNotInstalled,
    install_requirements,
)
from localcloud.sagemaker_service.host.toolkit import (
    UnsupportedJob,
    container_hyperparameters,
    read_program,
)
from localcloud.sagemaker_service.instance_table import LOCAL_GPU
from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import (
    FAILURE_REASON_LIMIT,
    UPLOAD_ENDED,
    SecondaryStatus,
    TrainingJob,
    billed_so_far_ms,
    moved,
)
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.settings import ServiceSettings
from localcloud.sagemaker_service.storage.log_shipping import ship_logs
from localcloud.sagemaker_service.storage.s3_transfer import (
    CheckpointSync,
    DataUnavailable,
    S3Transfer,
)
from localcloud.temporary import TEMPORARY_PREFIX
from traindyno.core.suite.job_time import UPLOAD_SECONDS

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalStatus:
    """The status with which a job ends."""

    secondary_status: SecondaryStatus
    failure_reason: str | None = None
    #: The end of the time that is billed; None for the present.
    ended_ms: int | None = None


COMPLETED = FinalStatus(secondary_status=SecondaryStatus.COMPLETED)
STOPPED = FinalStatus(secondary_status=SecondaryStatus.STOPPED)
RAN_TOO_LONG = FinalStatus(secondary_status=SecondaryStatus.MAX_RUNTIME_EXCEEDED)


def failed(reason: str) -> FinalStatus:
    return FinalStatus(secondary_status=SecondaryStatus.FAILED, failure_reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The objects that all jobs of one service share."""

    store: JobStore
    transfer: S3Transfer
    log_client: Any
    settings: ServiceSettings
    clock: SystemClock
    gpu_count: int
    faults: FaultInjector


class JobRun:
    def __init__(
        self, job: TrainingJob, context: JobContext, *, is_service_ending: Callable[[], bool]
    ) -> None:
        self._stops = context.faults.current.stops
        self._job = job
        self._is_service_ending = is_service_ending
        self._interruptions: list[SpotInterruption] | None = None
        self._earlier_logs: set[Path] = set()
        self._interruption: SpotInterruption | None = (
            None  # of the training that runs or ended last
        )
        self._context = context
        self._folder = context.settings.state_folder / "jobs" / job.name
        self._upload_time = UploadTime(UPLOAD_SECONDS)
        self._logs = {host: self._folder / host / "log.txt" for host in job.hosts}

    def run(self) -> FinalStatus:
        """Does the job's work, removes its processes and inputs, and returns its final status.

        Raises ServiceEnding if the service itself ends. The next start finds the job.
        """
        try:
            final = self._run_to_end()
            return replace(final, ended_ms=self._context.clock.now_ms())
        finally:
            # The instances are not billed any more.
            ship_logs(self._context.log_client, self._job.name, self._logs)

    def _run_to_end(self) -> FinalStatus:
        try:
            return self._run()
        except (UnsupportedJob, DataUnavailable) as error:
            return failed(f"ClientError: {str(error).removeprefix('ClientError: ')}")
        except RequirementsNotInstalled as error:
            return failed(f"AlgorithmError: {error}, exit code: 1"[:FAILURE_REASON_LIMIT])
        finally:
            end_stray_processes(process_mark(self._job, self._context.settings))
            remove_inputs(self._folder)

    def _run(self) -> FinalStatus:
        while (final := self._run_once()) is None:
            LOG.info("%s is interrupted", self._job.name)
            self._move(SecondaryStatus.INTERRUPTED)
            ship_logs(self._context.log_client, self._job.name, self._logs)
            time.sleep(PAUSE_SECONDS)
            self._move(SecondaryStatus.STARTING)
        return final

    def _run_once(self) -> FinalStatus | None:
        """The final status; None if the job lost its instances and starts again with the
        checkpoints in S3.
        """
        program = read_program(self._job)
        image = find_local_image(self._job.image_uri, self._context.settings)
        self._move(SecondaryStatus.DOWNLOADING)
        shutil.rmtree(self._folder, ignore_errors=True)
        trees = [make_host_tree(self._folder, host) for host in self._logs]
        for tree in trees:
            # Before the download: the parent of a shared job sees in their age how long the job has
            # run.
            write_configs(self._job, tree, container_hyperparameters(self._job, tree))
        sync = self._checkpoint_sync(trees)

        def download() -> None:
            download_source(self._context.transfer, program, trees, self._folder)
            download_channels(self._context.transfer, self._job, trees, self._folder)
            if sync is not None:
                sync.restore()

        if not is_done_before(self._must_stop, download) or self._must_stop():
            return self._end_without_outputs()
        if self._interruptions is None:
            steps = count_steps(self._job, trees[0])
            self._interruptions = [*plan_interruptions(self._job, self._context.faults, steps)]
        self._earlier_logs = set(find_step_logs(self._job, trees[0]))
        self._move(SecondaryStatus.TRAINING)
        training_end = self._train(trees, sync, image)
        interruption = self._interruption
        self._interruption = None
        # A job that was cut off has its files in S3 only after a notice.
        if interruption is not None and not (interruption.has_notice and training_end.is_success):
            return self._end_without_outputs() if self._must_stop() else None
        self._move(SecondaryStatus.UPLOADING)
        self._upload_time.run(
            partial(
                upload_outputs,
                self._job,
                trees,
                transfer=self._context.transfer,
                job_folder=self._folder,
                logs=self._logs,
                is_over=self._upload_time.is_over,
            )
        )
        return self._final_status(trees, training_end)

    def _end_without_outputs(self) -> FinalStatus:
        if self._is_service_ending():
            raise ServiceEnding
        return STOPPED if self._is_asked_to_stop() else RAN_TOO_LONG

    def _train(
        self, trees: Sequence[HostTree], sync: CheckpointSync | None, image: LocalImage
    ) -> TrainingEnd:
        settings = self._context.settings
        if sync is not None:
            sync.start()
        try:
            packages = install_requirements(
                self._folder / "code",
                python=image.python,
                cache=settings.state_folder / "requirements",
                log=next(iter(self._logs.values())),
                environment=pip_environment(self._job, os.environ),
                should_stop=self._must_stop,
            )
            with TemporaryDirectory(prefix=TEMPORARY_PREFIX, ignore_cleanup_errors=True) as folder:
                orders = host_orders(
                    self._job,
                    trees,
                    image=image,
                    packages=packages,
                    settings=settings,
                    gpu_count=self._context.gpu_count
                    if self._job.instance_type == LOCAL_GPU
                    else 0,
                    logs=self._logs,
                    stops=self._stops,
                    temporary=Path(folder),
                )
                return train(
                    self._job,
                    orders,
                    order_folder=self._folder,
                    settings=settings,
                    should_stop=lambda: self._must_stop() or self._interrupt(trees, sync),
                    is_service_ending=self._is_service_ending,
                )
        finally:
            self._upload_time.begin()
            if sync is not None:
                self._upload_time.run(partial(sync.finish, self._upload_time.is_over))

    def _interrupt(self, trees: Sequence[HostTree], sync: CheckpointSync | None) -> bool:
        """Whether a spot interruption is due.

        An interruption without notice has killed the job's processes already.
        """
        if not self._interruptions:
            return False
        if not self._interruptions[0].is_due(
            set(find_step_logs(self._job, trees[0])) - self._earlier_logs
        ):
            return False
        self._interruption = self._interruptions.pop(0)
        if not self._interruption.has_notice:
            if sync is not None:
                sync.abandon()
            end_stray_processes(process_mark(self._job, self._context.settings))
        return True

    def _final_status(self, trees: Sequence[HostTree], training_end: TrainingEnd) -> FinalStatus:
        if self._is_asked_to_stop():
            return STOPPED
        if training_end.is_success:
            return failed(UPLOAD_ENDED) if self._upload_time.is_exceeded else COMPLETED
        if self._ran_too_long():
            return RAN_TOO_LONG
        return failed(algorithm_error(trees, training_end, self._logs))

    def _checkpoint_sync(self, trees: Sequence[HostTree]) -> CheckpointSync | None:
        configured = self._job.request.get("CheckpointConfig")
        if configured is None:
            return None
        container_path = configured.get("LocalPath", "/opt/ml/checkpoints")
        if not is_container_path(container_path):
            raise UnsupportedJob(
                f"CheckpointConfig.LocalPath {container_path}: {OUTSIDE_CONTAINER_ROOT}"
            )
        folders = [tree.host_path(container_path) for tree in trees]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        period_seconds = self._context.settings.checkpoint_sync_seconds
        return CheckpointSync(self._context.transfer, configured["S3Uri"], folders, period_seconds)

    def _move(self, secondary_status: SecondaryStatus) -> None:
        now_ms = self._context.clock.now_ms()

        def move(job: TrainingJob) -> TrainingJob:
            start_ms = job.training_start_ms if job.training_start_ms is not None else now_ms
            return replace(moved(job, secondary_status, now_ms=now_ms), training_start_ms=start_ms)

        self._job = self._context.store.change(self._job.name, move)

    def _must_stop(self) -> bool:
        return self._is_service_ending() or self._is_asked_to_stop() or self._ran_too_long()

    def _is_asked_to_stop(self) -> bool:
        stored = self._context.store.get(self._job.name)
        return stored is not None and stored.stop_requested

    def _ran_too_long(self) -> bool:
        return (
            billed_so_far_ms(self._job, self._context.clock.now_ms())
            >= self._job.max_runtime_seconds * 1000
        )
