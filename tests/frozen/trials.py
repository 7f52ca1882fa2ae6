"""One short run of each frozen script that needs no library of AWS's: its inputs, and what its step
log must say.
"""

import os
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

from traindyno.bundle import REPO_ROOT
from traindyno.core.step_log.content import ProcessLog
from traindyno.core.step_log.reader import StepLog, read_step_log

PROCESSES = 2
LIMIT_SECONDS = 180
SMALL = "n_embd=32,n_layer=2,n_head=2,n_positions=64"
SMALL_ALBERT = (
    "hidden_size=32,embedding_size=16,num_hidden_layers=2,num_attention_heads=2,intermediate_size=64,"
    "max_position_embeddings=64"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A trial of a frozen suite; the steps and the batch are of each process, the versions are
    named in the step log.
    """

    name: str
    environment: str
    folder: str
    arguments: str
    steps: int
    batch: int
    versions: dict[str, str]
    channels: dict[str, str] = field(default_factory=dict)
    least_accuracy: float | None = None


BERT_EAGER = Trial(
    name="bert-trainium eager",
    environment="frozen_torch_1_12",
    folder="bert_trainium",
    arguments=(
        "--model_name_or_path {inputs}/bert --seed 100 --max_length 32 "
        "--per_device_train_batch_size 8 --per_device_eval_batch_size 8 --learning_rate 0.002 "
        "--max_train_steps 60 --num_train_epochs 1 --output_dir {output}"
    ),
    channels={"train": "reviews/train", "val": "reviews/val"},
    steps=60,
    batch=8,
    versions={"torch": "1.12.1", "transformers": "4.21.1"},
    least_accuracy=0.75,
)
TRIALS = (
    Trial(
        name="gpt2-compiler native",
        environment="frozen_torch_1_11",
        folder="gpt2_compiler",
        arguments=(
            "--model_type gpt2 --tokenizer_name {inputs}/tokenizer --do_train True --do_eval "
            "False --fp16 False --per_device_train_batch_size 4 --learning_rate 0.003 "
            "--block_size 32 --num_train_epochs 1 --max_steps 30 --logging_strategy steps "
            "--logging_steps 1 --dataloader_drop_last True --save_strategy no "
            f"--evaluation_strategy no --overwrite_output_dir True --output_dir {{output}} "
            f"--config_overrides {SMALL}"
        ),
        channels={"train": "text"},
        steps=30,
        batch=4,
        versions={"torch": "1.11.0", "transformers": "4.21.1", "datasets": "2.4.0"},
    ),
    Trial(
        name="albert-scaling DDP",
        environment="frozen_torch_1_12",
        folder="albert_scaling",
        arguments=(
            "--model_type albert --tokenizer_name {inputs}/tokenizer --max_seq_length 32 "
            "--max_steps 30 --per_device_train_batch_size 8 --dataloader_num_workers 1 --do_train "
            f"True --learning_rate 0.003 --output_dir {{output}} --config_overrides {SMALL_ALBERT}"
        ),
        channels={"train": "text"},
        steps=30,
        batch=8,
        versions={"torch": "1.12.1", "transformers": "4.21.1"},
    ),
    BERT_EAGER,
    replace(
        BERT_EAGER,
        name="bert-trainium eager, PyTorch 1.13",
        environment="frozen_torch_1_13",
        versions={"torch": "1.13.1", "transformers": "4.21.1"},
    ),
)


def run(trial: Trial, python: Path, inputs: Path, scratch: Path) -> StepLog:
    """Its step log. Raises RuntimeError with the end of its output if it failed."""
    output = scratch / trial.folder
    arguments = trial.arguments.format(inputs=inputs, output=output / "model").split()
    script = REPO_ROOT / "experiments" / trial.folder / "train.py"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(PROCESSES)]
    ended = subprocess.run(
        [str(python), *launcher, str(script), *arguments],
        cwd=scratch,
        env=_job_environment(trial, inputs, output),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    if ended.returncode != 0:
        raise RuntimeError(
            f"{trial.name} ended with status {ended.returncode}:\n{ended.stdout[-4000:]}"
        )
    files = {
        str(path): path.read_text().splitlines() for path in sorted(output.rglob("rank-*.jsonl"))
    }
    return read_step_log(files)


def _job_environment(trial: Trial, inputs: Path, output: Path) -> dict[str, str]:
    channels = {
        f"SM_CHANNEL_{name.upper()}": str(inputs / folder)
        for name, folder in trial.channels.items()
    }
    return {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RANK", "WORLD_SIZE", "LOCAL_"))
        },
        **channels,
        "PYTHONPATH": str(REPO_ROOT),
        "TRAINDYNO_STEP_LOG_DIRECTORY": str(output / "step_log"),
        "TRAINING_JOB_NAME": trial.folder.replace("_", "-"),
        "SM_OUTPUT_DIR": str(output),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(output / "cache"),
        "CUDA_VISIBLE_DEVICES": "",
    }


def problems_of(trial: Trial, log: StepLog) -> list[str]:
    """What the step log should say and doesn't."""
    if len(log.sessions) != 1:
        return [f"{len(log.sessions)} sessions in the step log; expected 1: {log.problems}"]
    (session,) = log.sessions
    problems = [
        *log.problems,
        *(error.message for process in session.processes for error in process.errors),
    ]
    if len(session.processes) != PROCESSES:
        problems.append(
            f"{len(session.processes)} processes wrote a step log; expected {PROCESSES}"
        )
    for process in session.processes:
        problems += _problems_of_process(trial, process)
    return problems


def _problems_of_process(trial: Trial, process: ProcessLog) -> list[str]:
    facts = process.environment.facts if process.environment else {"versions": {}}
    versions = {name: str(facts["versions"].get(name)).partition("+")[0] for name in trial.versions}
    samples = [step.samples for step in process.steps]
    losses = [step.loss for step in process.steps]
    problems = []
    if versions != trial.versions:
        problems.append(f"the step log names {versions}; expected {trial.versions}")
    if samples != [trial.batch] * trial.steps:
        problems.append(
            f"samples of the steps: {samples}; expected {trial.steps} times {trial.batch}"
        )
    if not is_falling(losses):
        problems.append(
            f"losses {losses}; expected a mean of the last third below that of the first"
        )
    if trial.least_accuracy is not None:
        accuracies = [evaluation.metrics["accuracy"] for evaluation in process.evaluations]
        if len(accuracies) != 1 or accuracies[0] < trial.least_accuracy:
            problems.append(
                f"accuracies {accuracies}; expected one of at least {trial.least_accuracy}"
            )
    return problems


def is_falling(losses: list[float | None]) -> bool:
    numbers = [loss for loss in losses if loss is not None]
    third = len(losses) // 3
    return len(numbers) == len(losses) and sum(numbers[-third:]) < sum(numbers[:third])
