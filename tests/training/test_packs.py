"""A cell of each pack's local suite through the training entry point, and the frozen GPT-J script
over a stand-in.

The stand-in for SageMaker's model parallel library takes what the library's documents say.
"""

import itertools
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import torch
from transformers import GPTJConfig, GPTJForCausalLM

from tests.frozen.small_inputs import word_piece_tokenizer
from tests.training.forked_jobs import run_forked
from tests.training.jobs import REPO_ROOT, JobEnd
from tests.training.run_documents import ENTRY_POINT, write_texts
from tests.training.s3_server import NEEDS_S3, PROGRAM, s3_server, upload
from traindyno.api.sample_data import write_sample
from traindyno.api.suite_loading import load_suite
from traindyno.core.measurement.measured_run import measure_run
from traindyno.core.run.workload import Workload
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.slow_steps import CellSteps, describe_steps
from traindyno.sagemaker.launcher import own_hyperparameters

pytestmark = pytest.mark.nightly

STEPS = 5
# One cell of each pack, by its label; compilers are trained in test_strategies.
CELLS = {
    "gpt2-compiler": "eager · batch 16",
    "gptj-parallel": "pipeline · batch 16 · pipeline schedule interleaved · micro batches 4",
    "albert-scaling": "4 × local.cpu · 1 loader worker",
    "bert-trainium": "eager",
}
STREAMS = "albert-scaling"
STARVED = "4 × local.cpu · 0 loader workers"
GPTJ_SCRIPT = REPO_ROOT / "experiments" / "gptj_parallel" / "train.py"
STAND_INS = REPO_ROOT / "tests" / "training" / "stand_ins"
GPTJ_ARGUMENTS = (
    "--tensor_parallel_degree 1 --pipeline_parallel_degree 1 --mp_parameters "
    "ddp=True,microbatches=2,partitions=1 --activation_checkpointing 1 --manual_partition 1 "
    "--train_batch_size 4 --val_batch_size 4 --max_context_width 16 --max_steps 12 "
    "--validation_freq 6 --checkpoint_freq 8 --logging_freq 10 --lr 0.003 --lr_decay_iters 1000 "
    "--warmup 0.002 --skip_full_optimizer 1 --save_final_full_model 1"
)


@cache
def ends() -> dict[str, JobEnd]:
    """The ends of the jobs by the pack's name, and that of the GPT-J script."""
    scratch = Path(mkdtemp())
    packs = [pack for pack in CELLS if pack != STREAMS or PROGRAM.exists()]
    return {pack: local_run(pack, scratch / pack) for pack in packs} | {
        "gptj script": gptj_run(scratch / "gptj-script")
    }


def suite_and_cell(pack: str, label: str | None = None) -> tuple[Suite, Cell]:
    suite = load_suite(REPO_ROOT / "suites" / pack / "local.yaml").suite
    (cell,) = [cell for cell in suite.cells if cell.label == (label or CELLS[pack])]
    return suite, cell


def local_run(
    pack: str, folder: Path, label: str | None = None, *, steps: int = STEPS, **further: Any
) -> JobEnd:
    """Run what the container gets, with ``further``, but for a few steps."""
    suite, cell = suite_and_cell(pack, label)
    with staged_data(suite, folder) as (workload, channels):
        measurement = replace(suite.measurement, max_steps=steps)
        staged = replace(suite, workload=workload, measurement=measurement)
        (run,) = trial_runs("e", [cell], [1])
        own = {"SM_HPS": json.dumps({**own_hyperparameters(run, staged), **further})}
        environment = {**channels, **own, **suite.workload.environment}
        return run_forked(
            folder, ENTRY_POINT, processes=cell.settings.instance_count, environment=environment
        )


@contextmanager
def staged_data(suite: Suite, folder: Path) -> Iterator[tuple[Workload, dict[str, str]]]:
    """The workload with its data in a channel's folder, or in S3 if it streams them, and the
    variables that tell.
    """
    workload = suite.workload
    dataset = suite.workload.dataset
    assert dataset is not None
    data = write_sample(str(dataset.path), folder / "data")
    if dataset.input_mode is not InputMode.STREAM:
        yield workload, {"SM_CHANNEL_TRAIN": str(data)}
        return
    with s3_server(folder) as environment:
        streamed = replace(dataset, path=upload(data, environment))
        yield replace(workload, dataset=streamed), environment


def gptj_run(folder: Path) -> JobEnd:
    folder.mkdir()
    texts = write_texts(folder / "texts")
    weights = folder / "weights"
    tokenizer = word_piece_tokenizer(texts / "part0.txt")
    tokenizer.save_pretrained(weights)
    torch.manual_seed(0)
    small = GPTJConfig(
        vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=16, rotary_dim=8
    )
    GPTJForCausalLM(small).save_pretrained(weights)
    places = ("--model_name_or_path", str(weights), "--output_dir", str(folder / "model"))
    channels = {
        "SM_CHANNEL_TRAIN": str(texts),
        "SM_CHANNEL_TEST": str(texts),
        "HF_HOME": str(folder / "cache"),
    }
    environment = {**channels, "PYTHONPATH": f"{STAND_INS}{os.pathsep}{REPO_ROOT}"}
    arguments = (*places, *GPTJ_ARGUMENTS.split())
    return run_forked(folder, GPTJ_SCRIPT, *arguments, environment=environment)


@pytest.mark.parametrize(
    "pack", [pytest.param(pack, marks=NEEDS_S3 if pack == STREAMS else ()) for pack in CELLS]
)
def test_a_cell_of_the_local_suite_trains_in_as_many_processes_as_it_names(pack: str) -> None:
    suite, cell = suite_and_cell(pack)
    end = ends()[pack]
    assert end.exit_code == 0, end.output
    processes = cell.settings.instance_count
    assert len(end.log_files) == processes
    samples = [[step["samples"] for step in end.of_kind("step", rank)] for rank in range(processes)]
    is_split = cell.settings.strategy == "ddp"
    expected = cell.settings.batch_size * (processes if is_split else 1)
    assert [sum(step) for step in zip(*samples, strict=True)] == [expected] * STEPS
    accuracies = [evaluation["metrics"]["accuracy"] for evaluation in end.of_kind("evaluation")]
    assert len(accuracies) == (1 if suite.measurement.evaluate else 0)
    assert all(0 < accuracy <= 1 for accuracy in accuracies)


@NEEDS_S3
def test_the_posts_starved_loader_is_found_in_its_local_pack(tmp_path: Path) -> None:
    """The loader reads, tokenises and masks text: nothing in it waits."""
    suite, cell = suite_and_cell("albert-scaling", STARVED)
    end = local_run("albert-scaling", tmp_path, STARVED, steps=suite.measurement.max_steps)
    assert end.exit_code == 0, end.output
    files = {f"job/{path.name}": path.read_text().splitlines() for path in end.log_files}
    log = read_step_log(files)
    assert log.measured is not None, end.output
    table = tabulate_steps(log.measured)
    measured = measure_run(log, log.measured, table, warmup_steps=3, peak_flops_per_device=None)
    steps = CellSteps(step_parts=measured.step_parts)
    text = " ".join(describe_steps(cell.label, steps))
    match = re.search(r"(\d+) % of a step of .* waits for data", text)
    assert match, text
    # About 45 %, of which other work on the machine may hide a part. Prepared tokens took 2 %.
    assert int(match[1]) > 15


def test_script_logs_samples_tokens_and_learning_rate_of_each_step() -> None:
    """The learning rate rises during warm-up and falls afterwards."""
    end = ends()["gptj script"]
    assert end.exit_code == 0, end.output
    steps = end.of_kind("step")
    assert [(step["samples"], step["tokens"]) for step in steps] == [(4, 64)] * 12
    # Two steps of warm-up, 0.002 of 1,000; then linear from 0.003 down to 0.00001 after 1,000
    # steps.
    assert [step["learning_rate"] for step in steps[:4]] == pytest.approx(
        [0.0015, 0.003, 0.003, 0.002997], rel=1e-4
    )
    rates = [step["learning_rate"] for step in steps[2:]]
    assert all(later < earlier for earlier, later in itertools.pairwise(rates))


def test_script_learns_from_its_pretrained_weights_and_evaluates() -> None:
    end = ends()["gptj script"]
    losses = [step["loss"] for step in end.of_kind("step")]
    (size,) = end.of_kind("model")
    pretrained = GPTJForCausalLM.from_pretrained(end.folder / "weights")
    assert size["parameters"] == sum(parameter.numel() for parameter in pretrained.parameters())
    assert sum(losses[-3:]) < 0.95 * sum(losses[:3])
    evaluations = end.of_kind("evaluation")
    assert [evaluation["step"] for evaluation in evaluations] == [6, 12]
    assert evaluations[1]["metrics"]["loss"] < evaluations[0]["metrics"]["loss"] < losses[0]


def test_script_saves_partial_checkpoints_on_the_way_and_the_full_model_at_the_end() -> None:
    end = ends()["gptj script"]
    names = [phase["name"] for phase in end.of_kind("phase")]
    assert [name for name in names if name in ("load", "trace", "evaluate", "save")] == [
        "load",
        "trace",
        "evaluate",
        "save",
        "evaluate",
        "save",
    ]
    partial = torch.load(end.folder / "model" / "checkpoints" / "step8_partial" / "model.pt")
    full = torch.load(end.folder / "model" / "fullmodel.pt")
    loaded = GPTJForCausalLM.from_pretrained(end.folder / "weights").state_dict()
    assert full.keys() == partial.keys() == loaded.keys()
    changed = [name for name in full if not torch.equal(full[name], loaded[name])]
    assert "lm_head.weight" in changed
