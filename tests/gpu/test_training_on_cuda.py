"""Runs on this machine's first CUDA device: they learn what the CPU learns, and their step log
tells the device's time.

Without a device nothing here runs; the strategies' arithmetic is held on the CPU by tests/training.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from localcloud.ports import free_port
from tests.training.checkpointed import Attempt, train_attempts
from tests.training.jobs import SCRIPTS, JobEnd, run_job
from tests.training.run_documents import run_document, run_training, write_reviews, write_texts
from traindyno.callbacks.clock import CudaClock, now
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.reader import read_step_log

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="this machine has no CUDA device"
)

# One process with a process group of its own, as torchrun starts it.
ALONE = {"CUDA_VISIBLE_DEVICES": "0", "MASTER_ADDR": "127.0.0.1", "RANK": "0", "WORLD_SIZE": "1"}
SYNTHETIC = {"dataset": {"format": "synthetic"}, "tokenizer": None}
CHANGE_LOSSES = frozenset({"gradient_accumulation_steps", "gradient_clip_norm"})
# differences of the loss: kernels add in another order; 16 bits round
EXACT = 2e-4
LOWER = 2e-3
CASES: dict[str, tuple[str, dict[str, Any], float]] = {
    "gpt2": ("gpt2", {}, EXACT),
    "gptj": ("gptj", {}, EXACT),
    "albert": ("albert", {}, EXACT),
    "bert": ("bert", {}, EXACT),
    "a window": ("mistral", {}, EXACT),
    "a window, bf16, inductor": ("mistral", {"precision": "bf16", "compiler": "inductor"}, LOWER),
    "clipping, accumulation, pinned": (
        "gpt2",
        {
            "gradient_clip_norm": 0.1,
            "gradient_accumulation_steps": 2,
            "pin_memory": True,
            "loader_workers": 1,
        },
        EXACT,
    ),
    "checkpointing and offloading": (
        "gpt2",
        {"activation_checkpointing": True, "activation_offloading": True},
        EXACT,
    ),
    "ddp": ("gpt2", {"strategy": "ddp"}, EXACT),
    "fsdp": ("gpt2", {"strategy": "fsdp"}, EXACT),
    "zero1": ("gpt2", {"strategy": "zero1"}, EXACT),
    "inductor": ("gpt2", {"compiler": "inductor"}, EXACT),
    "bf16": ("gpt2", {"precision": "bf16"}, LOWER),
    "fp16": ("gpt2", {"precision": "fp16"}, LOWER),
    "ddp, bf16, inductor": (
        "bert",
        {"strategy": "ddp", "precision": "bf16", "compiler": "inductor"},
        LOWER,
    ),
    "fsdp, bf16": ("gpt2", {"strategy": "fsdp", "precision": "bf16"}, LOWER),
    "fsdp, fp16": ("gpt2", {"strategy": "fsdp", "precision": "fp16"}, LOWER),
}


def on_cuda(
    folder: Path,
    document: dict[str, Any],
    data: Path | None = None,
    environment: dict[str, str] | None = None,
) -> JobEnd:
    alone = {**ALONE, "MASTER_PORT": str(free_port()), **(environment or {})}
    return run_training(folder, document, data, environment=alone, is_forked=False)


def losses_of(end: JobEnd) -> list[float]:
    assert end.exit_code == 0, end.output
    return [step["loss"] for step in end.of_kind("step")]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a model that both devices begin with: each makes other weights of a seed."""

    @cache
    def save(model: str) -> Path:
        folder = tmp_path_factory.mktemp(model)
        end = run_training(
            folder,
            run_document(
                model, workload=SYNTHETIC, measurement={"max_steps": 1, "save_model": True}
            ),
            None,
        )
        assert end.exit_code == 0, end.output
        return folder / "model"

    return save


@pytest.mark.parametrize("name", CASES)
def test_a_run_on_the_device_has_the_losses_of_one_on_the_cpu(
    tmp_path: Path, start: Callable[[str], Path], name: str
) -> None:
    model, settings, tolerance = CASES[name]
    for device in ("cpu", "cuda"):
        (tmp_path / device).mkdir()
    workload = {**SYNTHETIC, "model": {"path": "s3://bucket/model"}}
    channel = {"SM_CHANNEL_MODEL": str(start(model))}
    on_both: dict[str, Any] = {
        setting: value for setting, value in settings.items() if setting in CHANGE_LOSSES
    }
    measurement = {"evaluate": True, "save_model": True}
    reference = run_document(model, workload=workload, settings=on_both, measurement=measurement)
    expected = run_training(tmp_path / "cpu", reference, None, environment=channel)
    document = run_document(
        model,
        workload=workload,
        settings={**settings, "instance": "local.gpu"},
        measurement=measurement,
    )
    end = on_cuda(tmp_path / "cuda", document, environment=channel)
    assert losses_of(end) == pytest.approx(losses_of(expected), abs=tolerance)
    (environment,) = end.of_kind("environment")
    assert environment["facts"]["device_name"] == torch.cuda.get_device_name()
    steps = end.of_kind("step")
    assert all(
        0 < step["peak_memory_bytes"] < torch.cuda.get_device_properties(0).total_memory
        for step in steps
    )
    assert all(step["begin"] < step["end"] for step in steps)
    assert all(
        before["end"] <= after["begin"] + 1e-6 for before, after in itertools.pairwise(steps)
    )
    assert (tmp_path / "cuda" / "model" / "config.json").exists()
    log = read_step_log({path.name: path.read_text().splitlines() for path in end.log_files})
    assert log.measured is not None


def test_texts_are_tokenised_trained_on_and_evaluated(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts")
    document = run_document(
        settings={"instance": "local.gpu", "loader_workers": 2}, measurement={"evaluate": True}
    )
    end = on_cuda(tmp_path, document, texts)
    losses = losses_of(end)
    assert losses[-1] < losses[0]
    assert len(end.of_kind("evaluation")) == 1


@pytest.mark.parametrize("model", ["gpt2", "mistral"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_packed_texts_train_apart_as_on_the_cpu(tmp_path: Path, model: str, precision: str) -> None:
    """The job itself compares three losses before its first step, and ends if the documents are not
    apart.
    """
    texts = write_reviews(tmp_path / "texts")
    losses = []
    for device, run in (("local.cpu", run_training), ("local.gpu", on_cuda)):
        folder = tmp_path / device
        folder.mkdir()
        settings = {
            "instance": device,
            "document_masking": True,
            "precision": precision,
            "learning_rate": {"base": 1e-9},
        }
        workload = {"dataset": {"path": "s3://bucket/data", "text_column": "text"}}
        document = run_document(
            model, workload=workload, settings=settings, measurement={"max_steps": 4}
        )
        losses.append(losses_of(run(folder, document, texts)))
    # Each device draws its own weights, so that only their size is the same.
    assert losses[1] == pytest.approx(losses[0], rel=0.05)


def test_a_model_too_big_for_the_device_is_out_of_memory(tmp_path: Path) -> None:
    config = {"model_type": "gpt2", "n_embd": 16384, "n_layer": 64, "n_head": 64, "n_positions": 16}
    document = run_document(
        workload={**SYNTHETIC, "model": {"config": config}},
        settings={"instance": "local.gpu", "batch_size_per_device": 1},
    )
    end = on_cuda(tmp_path, document)
    assert end.exit_code != 0
    (error,) = end.of_kind("error")
    assert error["outcome"] == Outcome.OUT_OF_MEMORY, error


@pytest.mark.parametrize(
    "settings", [{}, {"precision": "fp16"}, {"dropout": 0.1}], ids=["fp32", "fp16", "dropout"]
)
def test_a_resumed_run_has_the_losses_and_the_weights_of_an_uninterrupted_one(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    on_cuda = {"strategy": "single", "instance": "local.gpu", **settings}
    resumable = Attempt(settings=on_cuda, checkpoints=str(tmp_path), every_steps=2, steps=6)
    (whole,) = train_attempts([replace(resumable, checkpoints=None)])
    train_attempts([replace(resumable, stops_after=3)])
    (resumed,) = train_attempts([resumable])
    assert set(resumed.losses) == {3, 4, 5, 6}
    for step, loss in resumed.losses.items():
        assert loss == pytest.approx(whole.losses[step], abs=1e-6)
    for name, parameter in resumed.parameters.items():
        assert torch.allclose(parameter, whole.parameters[name], atol=1e-6), name


def test_the_clock_tells_the_devices_time_and_not_the_hosts() -> None:
    """Kernels of known length are submitted in microseconds and end much later."""
    left = torch.randn(4096, 4096, device="cuda")
    counts = (1, 4, 16, 4, 1, 32)

    def work(count: int) -> None:
        for _ in range(count):
            torch.mm(left, left)

    work(8)
    torch.cuda.synchronize()
    expected = []
    for count in counts:
        begin = now()
        work(count)
        torch.cuda.synchronize()
        expected.append(now() - begin)
    clock = CudaClock()
    before = now()
    marks = [clock.mark()]
    for count in counts:
        work(count)
        marks.append(clock.mark())
    submitted = now() - before
    seconds = [end - begin for begin, end in itertools.pairwise(clock.resolve(marks))]
    assert submitted < sum(expected) / 2
    assert seconds == pytest.approx(expected, rel=0.2, abs=1e-3)
    assert before <= clock.resolve([clock.mark()])[0] <= now() + 1e-3


def test_hugging_faces_trainer_logs_steps_of_the_device(tmp_path: Path) -> None:
    end = run_job(
        tmp_path,
        SCRIPTS / "hf_trainer_script.py",
        str(tmp_path / "hf"),
        "64",
        "unsaid",
        environment={"CUDA_VISIBLE_DEVICES": "0"},
    )
    assert end.exit_code == 0, end.output
    steps = end.of_kind("step")
    assert [step["step"] for step in steps] == [1, 2, 3, 4]
    assert {step["samples"] for step in steps} == {8}
    assert all(step["peak_memory_bytes"] > 0 and step["begin"] < step["end"] for step in steps)
