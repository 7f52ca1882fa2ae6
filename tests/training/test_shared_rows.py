"""Rows that several processes train on together are counted once, or their log shows no rate."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.training.forked_jobs import run_forked
from traindyno.callbacks import hf_trainer, process
from traindyno.callbacks.lightning import _processes_that_share_rows
from traindyno.core.measurement.measured_run import measure_run
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps
from traindyno.core.step_log.unknown_work import describe_unknown_work
from traindyno.parent.step_times import RunLogs

SCRIPT = """
import sys, time, torch
from traindyno.callbacks import step_log

torch.distributed.init_process_group("gloo")
seeds, shared_by = {"same": 0, "own": torch.distributed.get_rank()}[sys.argv[1]], eval(sys.argv[2])
draw = torch.Generator().manual_seed(seeds)
for number in range(12):
    rows = torch.randn(7 if number == 11 else 8, 3, generator=draw)
    with step_log.step(batch={"rows": rows}, tokens=3 * len(rows), shared_by=shared_by):
        time.sleep(0.01)
time.sleep(0.3)
torch.distributed.destroy_process_group()
"""
OWN = type("DPOTrainer", (), {"__module__": "train"})


@pytest.mark.parametrize(
    ("batches", "shared_by", "samples"),
    [("same", None, None), ("same", 2, 95), ("same", 1, 190), ("own", None, 190)],
)
def test_rows_of_two_processes(
    batches: str, shared_by: int | None, samples: int | None, tmp_path: Path
) -> None:
    """Eleven batches of 8 rows and one of 7 in each process: 95."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    end = run_forked(tmp_path, script, batches, repr(shared_by), processes=2)
    assert end.exit_code == 0, end.output
    log = read_step_log({path.name: path.read_text().splitlines() for path in end.log_files})
    session = log.measured
    assert session is not None
    table = tabulate_steps(session)
    assert table is not None
    measured = measure_run(log, session, table, warmup_steps=2, peak_flops_per_device=None)
    of_parent = RunLogs(end.log_files[0].parent, hosts=1)
    of_parent.read_new()
    steps = of_parent.steps()
    if samples is None:
        assert (measured.throughput, steps) == (None, None)
        assert measured.unknown_work == "has processes with the same batches"
        message = describe_unknown_work(session) or ""
        assert "shared_by=N if N processes" in message
        assert "shared_by=1 if their data are constant" in message
        return
    assert measured.throughput is not None
    assert steps is not None
    assert sum(table.samples) == round(12 * steps.samples) == samples
    assert round(12 * steps.tokens) == 3 * samples


def test_a_number_of_processes_not_dividing_the_run_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    end = run_forked(tmp_path, script, "own", "3", processes=2)
    assert "got shared_by=3" in end.failure
    assert "in a run of 2; expected a divisor of 2" in end.failure


def trainer_with(mpu: Any = None, sizes: int = 1) -> Any:
    parallelism = SimpleNamespace(non_data_parallel_size=sizes)
    return SimpleNamespace(
        accelerator=SimpleNamespace(parallelism_config=parallelism),
        model_wrapped=SimpleNamespace(mpu=mpu),
    )


def test_a_trainers_parallelism_says_how_many_processes_share_rows() -> None:
    megatron = SimpleNamespace(
        get_model_parallel_world_size=lambda: 4, get_tensor_model_parallel_world_size=lambda: 2
    )
    ulysses = SimpleNamespace(get_sequence_parallel_world_size=lambda: 8)
    share = hf_trainer.processes_that_share_rows
    assert share(trainer_with()) is None
    assert share(trainer_with(sizes=4)) == 4
    assert share(trainer_with(ulysses, sizes=8)) == 8  # Accelerate gave the mpu to DeepSpeed
    assert share(trainer_with(ulysses)) == 8
    assert share(trainer_with(megatron)) == 4
    assert share(SimpleNamespace()) is None


def test_accelerates_own_configuration_has_the_number() -> None:
    from accelerate import ParallelismConfig

    config = ParallelismConfig(tp_size=2)
    trainer = SimpleNamespace(accelerator=SimpleNamespace(parallelism_config=config))
    assert hf_trainer.processes_that_share_rows(trainer) == 2


@pytest.mark.parametrize(("replicas", "shared"), [(8, None), (2, 4), (0, None)])
def test_lightnings_strategy_says_how_many_processes_share_rows(
    replicas: int, shared: int | None
) -> None:
    strategy = SimpleNamespace(distributed_sampler_kwargs={"num_replicas": replicas, "rank": 0})
    trainer = SimpleNamespace(strategy=strategy, world_size=8)
    assert _processes_that_share_rows(trainer) == shared


class Trl:
    """As TRL names its trainers."""


PAIRS = type("DPOTrainer", (Trl,), {"__module__": "trl.trainer.dpo_trainer"})


@pytest.mark.parametrize(
    ("trainer", "batch", "samples"),
    [
        (PAIRS(), {"input_ids": np.zeros((8, 5))}, 4),
        (type("Mine", (PAIRS,), {})(), {"input_ids": np.zeros((8, 5))}, 4),
        (PAIRS(), {"chosen_input_ids": np.zeros((8, 5)), "rejected_labels": np.zeros((8, 4))}, 8),
        (OWN(), {"input_ids": np.zeros((8, 5))}, 8),
        (Trl(), [{"prompt": "a"}] * 6, 6),
        # patches of pictures beside rows of tokens, as Qwen-VL's processor gives them
        (Trl(), {"input_ids": np.zeros((4, 9)), "pixel_values": np.zeros((112, 96))}, 4),
    ],
)
def test_samples_of_a_trainers_batch(trainer: Any, batch: Any, samples: int) -> None:
    assert hf_trainer.samples_of_batches(trainer)(batch) == samples


@pytest.mark.parametrize("world_size", [1, 4])
@pytest.mark.parametrize(("batch", "generations", "steps", "passes"), [(8, 4, 2, 1), (4, 8, 1, 3)])
def test_a_prompt_counts_once_over_its_answers_steps_and_passes(
    *,
    batch: int,
    generations: int,
    steps: int,
    passes: int,
    world_size: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = SimpleNamespace(steps_per_generation=steps)
    trainer = SimpleNamespace(num_generations=generations, num_iterations=passes, args=arguments)
    counted = 0
    rounds = generations * steps * passes
    for rank in range(world_size):
        this = process.Process(rank, world_size, "algo-1", "job", None)
        monkeypatch.setattr(process, "this_process", lambda this=this: this)
        count = hf_trainer.samples_of_batches(trainer)
        counted += sum(count([{"prompt": "a"}] * batch) for _ in range(rounds))
    assert counted == world_size * rounds * batch // (generations * steps * passes)
