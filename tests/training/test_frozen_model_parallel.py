"""The GPT-J script from arguments to checkpoints, over a stand-in that takes what the library's documents say."""

import itertools

import pytest
import torch
from transformers import GPTJConfig, GPTJForCausalLM

from tests.frozen.small_inputs import word_piece_tokenizer
from tests.training.jobs import REPO_ROOT, JobEnd, run_job
from tests.training.run_documents import write_texts

SCRIPT = REPO_ROOT / "training" / "frozen" / "gptj_parallel" / "train.py"
ARGUMENTS = (
    "--tensor_parallel_degree 1 --pipeline_parallel_degree 1 --mp_parameters ddp=True,microbatches=2,partitions=1 "
    "--activation_checkpointing 1 --manual_partition 1 --train_batch_size 4 --val_batch_size 4 --max_context_width 16 "
    "--max_steps 12 --validation_freq 6 --checkpoint_freq 8 --logging_freq 10 --lr 0.003 --lr_decay_iters 1000 "
    "--warmup 0.002 --skip_full_optimizer 1 --save_final_full_model 1"
)


@pytest.fixture(scope="module")
def end(tmp_path_factory: pytest.TempPathFactory) -> JobEnd:
    folder = tmp_path_factory.mktemp("gptj")
    texts = write_texts(folder / "texts")
    weights = folder / "weights"
    tokenizer = word_piece_tokenizer(texts / "part0.txt")
    tokenizer.save_pretrained(weights)
    torch.manual_seed(0)
    small = GPTJConfig(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=16, rotary_dim=8)
    GPTJForCausalLM(small).save_pretrained(weights)
    places = ["--model_name_or_path", str(weights), "--output_dir", str(folder / "model")]
    environment = {
        "PYTHONPATH": f"{REPO_ROOT}:{REPO_ROOT / 'tests' / 'training' / 'stand_ins'}",
        "SM_CHANNEL_TRAIN": str(texts),
        "SM_CHANNEL_TEST": str(texts),
        "HF_HOME": str(folder / "cache"),
    }
    return run_job(folder, SCRIPT, *places, *ARGUMENTS.split(), environment=environment)


def test_script_logs_each_step_with_its_samples_tokens_and_rising_then_falling_learning_rate(end: JobEnd) -> None:
    assert end.exit_code == 0, end.output
    steps = end.of_kind("step")
    assert [(step["samples"], step["tokens"]) for step in steps] == [(4, 64)] * 12
    # Two steps of warm-up, 0.002 of 1,000; then linear from 0.003 down to 0.00001 after 1,000 steps.
    assert [step["learning_rate"] for step in steps[:4]] == pytest.approx([0.0015, 0.003, 0.003, 0.002997], rel=1e-4)
    rates = [step["learning_rate"] for step in steps[2:]]
    assert all(later < earlier for earlier, later in itertools.pairwise(rates))


def test_script_learns_from_its_pretrained_weights_and_evaluates(end: JobEnd) -> None:
    losses = [step["loss"] for step in end.of_kind("step")]
    (size,) = end.of_kind("model")
    pretrained = GPTJForCausalLM.from_pretrained(end.folder / "weights")
    assert size["parameters"] == sum(parameter.numel() for parameter in pretrained.parameters())
    assert sum(losses[-3:]) < 0.95 * sum(losses[:3])
    evaluations = end.of_kind("evaluation")
    assert [evaluation["step"] for evaluation in evaluations] == [6, 12]
    assert evaluations[1]["metrics"]["loss"] < evaluations[0]["metrics"]["loss"] < losses[0]


def test_script_saves_partial_checkpoints_on_the_way_and_the_full_model_at_the_end(end: JobEnd) -> None:
    names = [phase["name"] for phase in end.of_kind("phase")]
    assert [name for name in names if name in ("load", "evaluate", "save")] == [
        "load",
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
