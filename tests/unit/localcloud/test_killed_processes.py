"""A process that ends by SIGKILL ran out of memory only where the kernel's counter says so."""

from pathlib import Path

import pytest

from localcloud.sagemaker_service.host.container_tree import HostTree
from localcloud.sagemaker_service.host.host_training import TrainingEnd
from localcloud.sagemaker_service.host.job_ends import algorithm_error
from traindyno.callbacks import failure
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.line import failure_text
from traindyno.sagemaker.failure_reasons import read_failure_reason


@pytest.mark.parametrize(("kills", "outcome"), [(0, Outcome.KILLED), (1, Outcome.OUT_OF_MEMORY)])
def test_sigkill_is_out_of_memory_only_with_a_count_of_the_kernel(
    tmp_path: Path, kills: int, outcome: Outcome
) -> None:
    end = TrainingEnd(
        exit_codes={"algo-1": 137},
        first_failed="algo-1",
        command=["python", "x.py"],
        oom_kills=kills,
    )
    reason = algorithm_error(
        [HostTree(host="algo-1", root=tmp_path)], end, {"algo-1": tmp_path / "log"}
    )
    assert reason.endswith(", exit code: 137")
    assert read_failure_reason(reason)[0] is outcome
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "failure").write_text(failure_text(Outcome.LOSS_DIVERGED, "loss is nan"))
    reason = algorithm_error(
        [HostTree(host="algo-1", root=tmp_path)], end, {"algo-1": tmp_path / "log"}
    )
    assert read_failure_reason(reason)[0] is Outcome.LOSS_DIVERGED


def test_kills_are_counted_by_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counters = tmp_path / "vmstat"
    counters.write_text("pgfault 12\noom_kill 3\n")
    monkeypatch.setattr(failure, "MACHINE", counters)
    monkeypatch.setattr(failure, "CONTAINER", tmp_path / "nowhere")
    assert failure.count_oom_kills() == 3
    monkeypatch.setattr(failure, "MACHINE", tmp_path / "nowhere")
    assert failure.count_oom_kills() == 0
