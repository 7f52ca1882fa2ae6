"""A job may do its last step while its instances are taken away: what it had not uploaded is lost
without a notice.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from localcloud.sagemaker_service.clock import SystemClock
from localcloud.sagemaker_service.host import job_run
from localcloud.sagemaker_service.host.job_ends import SpotInterruption
from localcloud.sagemaker_service.jobs.job import SecondaryStatus
from localcloud.sagemaker_service.jobs.job_store import JobStore
from tests.unit.localcloud.engine_samples import Bucket, add_job, job_context, stored, until
from tests.unit.localcloud.test_longest_bill import ask_to_stop

LIMIT = {"MaxRuntimeInSeconds": 60}
SCRIPT = """
import os, pathlib, time
asked, ended = pathlib.Path({asked!r}), pathlib.Path({ended!r})
while not asked.exists():
    time.sleep(0.01)
ml = pathlib.Path(os.environ["SM_MODEL_DIR"]).parent
(ml / "model" / "weights").write_text("trained")
(ml / "checkpoints" / "last_steps").write_text("of launch " + os.environ["TRAINDYNO_LAUNCH"])
ended.write_text(str(os.getpid()))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtTheEnd(SpotInterruption):
    """It comes after the script's end, and before the service sees the exit code."""

    asked: Path
    ended: Path
    meanwhile: Callable[[], None]

    def is_due(self, step_logs: Iterable[Path]) -> bool:
        assert not [*step_logs]
        self.asked.touch()
        until(lambda: self.ended.exists() and self.ended.read_text() != "")
        until(lambda: not Path("/proc", self.ended.read_text()).exists())
        self.meanwhile()
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    status: SecondaryStatus
    moves: list[str]
    uploads: dict[str, bytes]


def run_job(
    store: JobStore, folder: Path, *, has_notice: bool, meanwhile: Callable[[], None] = lambda: None
) -> Ended:
    asked = folder / "asked"
    ended = folder / "ended"
    bucket = Bucket(SCRIPT.format(asked=str(asked), ended=str(ended)))
    context = job_context(store, folder, transfer=bucket, checkpoint_sync_seconds=600)
    add_job(
        store, "job", StoppingCondition=LIMIT, CheckpointConfig={"S3Uri": "s3://lab/checkpoints"}
    )
    job = store.change("job", lambda job: replace(job, claimed=True))
    loss = AtTheEnd(
        after_steps=1, has_notice=has_notice, asked=asked, ended=ended, meanwhile=meanwhile
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_run, "plan_interruptions", lambda *_: [loss])
        final = job_run.JobRun(job, context, is_service_ending=lambda: False).run()
    moves = [transition.status.value for transition in stored(store, "job").transitions]
    return Ended(
        status=final.secondary_status,
        moves=moves,
        uploads={Path(uri).name: body for uri, body in bucket.objects.items()},
    )


def test_a_job_without_instances_and_notice_at_its_end_starts_again(
    store: JobStore, tmp_path: Path
) -> None:
    ended = run_job(store, tmp_path, has_notice=False)
    assert (ended.status, ended.moves.count("Interrupted")) == (SecondaryStatus.COMPLETED, 1)
    assert ended.uploads["last_steps"] == b"of launch 2"
    assert "model.tar.gz" in ended.uploads


def test_a_job_ending_after_the_notice_has_its_files_and_is_over(
    store: JobStore, tmp_path: Path
) -> None:
    ended = run_job(store, tmp_path, has_notice=True)
    assert (ended.status, ended.moves.count("Interrupted")) == (SecondaryStatus.COMPLETED, 0)
    assert ended.uploads["last_steps"] == b"of launch 1"
    assert "model.tar.gz" in ended.uploads


def test_a_job_stopped_at_the_loss_of_its_instances_leaves_no_outputs(
    store: JobStore, tmp_path: Path
) -> None:
    stop = partial(ask_to_stop, store, "job", SystemClock().now_ms)
    ended = run_job(store, tmp_path, has_notice=False, meanwhile=stop)
    assert (ended.status, ended.uploads) == (SecondaryStatus.STOPPED, {})
