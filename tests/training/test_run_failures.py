"""Runs that can't succeed end soon, on all ranks, with the right outcome and a message that names
the cause.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.training.jobs import JOB_NAME, JobEnd, job_environment
from tests.training.run_documents import ENTRY_POINT, MODELS, run_document, run_training
from traindyno.core.jobs.outcome import Outcome

TOO_LONG = {"max_steps": 100_000}
SPREAD = {"strategy": "ddp"}


def can_mount() -> bool:
    try:
        return (
            subprocess.run(
                ["unshare", "--user", "--map-root-user", "--mount", "true"], check=False
            ).returncode
            == 0
        )
    except FileNotFoundError:
        return False


def in_small_space(folder: Path) -> list[str]:
    """The beginning of a command, for which ``folder`` is a file system of two pages."""
    mount = f"mount -t tmpfs -o size=8k none {folder}"
    return [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        f'{mount} && exec "$@"',
        "sh",
    ]


def assert_failed(end: JobEnd, outcome: Outcome, *words: str, processes: int = 1) -> None:
    assert end.exit_code != 0
    for rank in range(processes):
        (error,) = end.of_kind("error", rank)
        assert error["outcome"] == outcome, error
        for word in words:
            assert word in error["message"]
        assert end.of_kind("end", rank) == []
    assert end.failure.startswith(f"traindyno-outcome: {outcome}: rank ")


def with_config(**changes: Any) -> dict[str, Any]:
    return {"model": {"config": {**MODELS["gpt2"], **changes}}}


# The document, its outcome, and words of the message.
FAILURES = {
    "data": (
        run_document(workload={"task": "sequence-classification"}, settings=SPREAD),
        Outcome.USER_CODE_ERROR,
        "part0.txt is text without labels",
    ),
    "vocabulary": (
        run_document(workload=with_config(vocab_size=300), settings=SPREAD),
        Outcome.USER_CODE_ERROR,
        "tokens and the model's vocabulary 300",
    ),
    "model": (
        run_document(workload={"model": {"path": "nobody/no-such-model"}}, settings=SPREAD),
        Outcome.USER_CODE_ERROR,
        "the model nobody/no-such-model can't be loaded",
    ),
    "loss": (
        run_document(settings={**SPREAD, "learning_rate": {"base": 1e20}}),
        Outcome.LOSS_DIVERGED,
        "is nan",
    ),
    "memory": (
        run_document(workload=with_config(n_embd=2**20, n_layer=1), settings=SPREAD),
        Outcome.OUT_OF_MEMORY,
        "memory",
    ),
}


@pytest.mark.parametrize("cause", FAILURES)
def test_a_failure_on_all_ranks_is_named_by_all(cause: str, tmp_path: Path, texts: Path) -> None:
    document, outcome, words = FAILURES[cause]
    assert_failed(run_training(tmp_path, document, texts, processes=2), outcome, words, processes=2)


def test_inductor_without_a_compiler_of_its_own_is_named_before_anything_is_loaded(
    tmp_path: Path, texts: Path
) -> None:
    document = run_document(settings={"compiler": "inductor"})
    end = run_training(tmp_path, document, texts, environment={"PATH": str(tmp_path), "CXX": "g++"})
    assert_failed(
        end,
        Outcome.IMAGE_ERROR,
        "compiler inductor needs a C++ compiler (g++",
        "or set compiler none",
    )


def test_an_unreachable_hub_dataset_is_named(tmp_path: Path) -> None:
    dataset = {"path": "nobody/no-such-dataset", "format": "hub"}
    end = run_training(tmp_path, run_document(workload={"dataset": dataset}), None)
    assert_failed(
        end,
        Outcome.USER_CODE_ERROR,
        "the dataset 'nobody/no-such-dataset' can't be loaded from the",
    )


@pytest.mark.skipif(
    not can_mount(), reason="no user namespaces here, so no small file system of the test's own"
)
def test_a_full_disk_ends_all_ranks_within_seconds(tmp_path: Path, texts: Path) -> None:
    """The file system has two pages, which the step log's second write doesn't fit in."""
    (tmp_path / "step_log").mkdir()
    document = run_document(settings=SPREAD, measurement=TOO_LONG)
    before = in_small_space(tmp_path / "step_log")
    launcher = _launch(
        tmp_path, ["--standalone", "--nproc-per-node", "2"], document, texts, before=before
    )
    assert launcher.wait(timeout=60) != 0
    failure = JobEnd(exit_code=launcher.returncode, output="", folder=tmp_path).failure
    assert failure.startswith("traindyno-outcome: user_code_error: rank ")
    assert "No space left on device" in failure


@pytest.mark.skipif(
    not can_mount(), reason="no user namespaces here, so no small file system of the test's own"
)
def test_a_preparation_filling_its_volume_names_the_setting_of_the_size(
    tmp_path: Path, texts: Path
) -> None:
    (tmp_path / "model").mkdir()
    preparation = {
        "execution_id": "execution",
        "key": "0" * 64,
        "instance": "local.cpu",
        "packing": True,
    }
    document = {**run_document(), "preparation": preparation}
    before = in_small_space(tmp_path / "model")
    launcher = _launch(tmp_path, [], document, texts, before=before)
    assert launcher.wait(timeout=60) != 0
    failure = JobEnd(exit_code=launcher.returncode, output="", folder=tmp_path).failure
    assert failure.startswith(
        "traindyno-outcome: user_code_error: rank 0: WorkloadError: tokenising s3://bucket/data "
    )
    assert "expected a larger job.volume_size_gb" in failure


def test_several_processes_without_a_strategy_for_them_are_refused(
    tmp_path: Path, texts: Path
) -> None:
    end = run_training(tmp_path, run_document(), texts, processes=2)
    # The other rank may still be importing when the launcher ends it, before it has a log.
    assert end.exit_code != 0
    assert end.failure.startswith("traindyno-outcome: user_code_error: rank ")
    assert "strategy single was started with 2 processes" in end.failure


def test_a_run_of_a_model_indivisible_by_its_degree_ends_at_its_start(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 16,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
    }
    changes = {"model": {"config": config}, "dataset": {"format": "synthetic"}}
    document = run_document(settings={"strategy": "tensor", "instance_count": 2}, workload=changes)
    end = run_training(tmp_path, document, None, processes=2)
    assert end.exit_code != 0
    assert (
        "cannot divide this llama into equal parts: it has 1 num_key_value_heads; expected strategy"
        in end.failure
    )


def test_a_cause_on_one_host_is_named_on_the_other(tmp_path: Path, texts: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "train.txt").write_text("")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    hosts = [tmp_path / "host0", tmp_path / "host1"]
    launchers = []
    for number, (host, data) in enumerate(zip(hosts, [texts, empty], strict=True)):
        host.mkdir()
        options = [
            "--nnodes",
            "2",
            "--node-rank",
            str(number),
            "--master-addr",
            "127.0.0.1",
            "--master-port",
            port,
        ]
        launchers.append(_launch(host, options, run_document(settings={"strategy": "ddp"}), data))
    for launcher in launchers:
        launcher.wait(timeout=120)
    for rank, host in enumerate(hosts):
        (error,) = JobEnd(exit_code=1, output="", folder=host).of_kind("error", rank)
        assert error["outcome"] == Outcome.USER_CODE_ERROR
        assert "rank 1: WorkloadError: the split 'train'" in error["message"]


def test_a_killed_rank_ends_the_others_within_seconds(tmp_path: Path, texts: Path) -> None:
    with _started(
        tmp_path, run_document(settings={"strategy": "ddp"}, measurement=TOO_LONG), texts
    ) as launcher:
        os.kill(_process_of_rank(launcher, 1), signal.SIGKILL)
        killed = time.monotonic()
        launcher.wait(timeout=60)
        assert time.monotonic() - killed < 30
    end = JobEnd(exit_code=launcher.returncode, output="", folder=tmp_path)
    (error,) = end.of_kind("error", 0)
    assert (error["outcome"], end.of_kind("error", 1)) == (Outcome.KILLED, [])
    assert "another process was killed" in error["message"]


def test_a_stopped_job_says_so_on_every_rank(tmp_path: Path, texts: Path) -> None:
    with _started(
        tmp_path, run_document(settings={"strategy": "ddp"}, measurement=TOO_LONG), texts
    ) as launcher:
        launcher.terminate()
        launcher.wait(timeout=60)
    end = JobEnd(exit_code=launcher.returncode, output="", folder=tmp_path)
    for rank in range(2):
        (error,) = end.of_kind("error", rank)
        assert error["outcome"] == Outcome.STOPPED_BY_USER
    assert end.failure == ""


def _launch(
    folder: Path,
    options: list[str],
    document: dict[str, Any],
    data: Path,
    before: Sequence[str] = (),
) -> "subprocess.Popen[bytes]":
    """Without ``options`` of torchrun, one process is started without it."""
    torchrun = ["-m", "torch.distributed.run", *options] if options else []
    return subprocess.Popen(
        [*before, sys.executable, *torchrun, str(ENTRY_POINT)],
        cwd=folder,
        env={
            **job_environment(folder),
            "SM_HPS": json.dumps(document),
            "SM_CHANNEL_TRAIN": str(data),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _started(folder: Path, document: dict[str, Any], data: Path) -> "subprocess.Popen[bytes]":
    """A job of two processes that has done its first steps."""
    launcher = _launch(folder, ["--standalone", "--nproc-per-node", "2"], document, data)
    logs = folder / "step_log" / JOB_NAME
    deadline = time.monotonic() + 120
    while sum('"step"' in path.read_text() for path in logs.glob("rank-*")) < 2:
        assert launcher.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return launcher


def _process_of_rank(launcher: "subprocess.Popen[bytes]", rank: int) -> int:
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    return next(
        int(child)
        for child in children
        if f"\0RANK={rank}\0" in Path(f"/proc/{child}/environ").read_text()
    )
