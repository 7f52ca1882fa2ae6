"""The step log's rate is that of a stopwatch inside the script: plain, under DDP, with Trainer and
with Lightning.
"""

from pathlib import Path

import pytest

from tests.training.forked_jobs import run_forked

BATCH_SIZE = 8
FIRST_STEP = 5
STEPS = 100
COMMON = f"""
import os, sys, time
import torch
from torch import nn

if hasattr(os, "sched_setaffinity"):  # Linux: each process stays on one core
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {{cores[int(os.environ.get("LOCAL_RANK", 0)) % len(cores)]}})
ends = []

def lap():
    ends.append(time.perf_counter())

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return {BATCH_SIZE * STEPS}

    def __getitem__(self, row):
        time.sleep(0.001)  # reads a file
        return {{"x": torch.ones(4) * (row % 7), "labels": torch.ones(1)}}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x, labels):
        time.sleep(0.005)
        return {{"loss": nn.functional.mse_loss(self.layer(x), labels)}}
"""
LOOP = """
from traindyno.callbacks import step_log

optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in torch.utils.data.DataLoader(Rows(), batch_size=8):
    with step_log.step(samples=len(batch["x"])) as step:
        loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        step.loss = loss.item()
    lap()
"""
SCRIPTS = {
    "plain": f"model = Model()\n{LOOP}",
    "ddp": f"""
from torch import distributed

distributed.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(Model())
{LOOP}
distributed.barrier()
time.sleep(0.2)
distributed.destroy_process_group()
""",
    "trainer": """
from transformers import Trainer, TrainerCallback, TrainingArguments
from traindyno.callbacks.hf_trainer import StepLogCallback

class Stopwatch(TrainerCallback):
    def on_step_end(self, *arguments, **options):
        lap()

options = TrainingArguments(
    output_dir="out", per_device_train_batch_size=8, num_train_epochs=1, logging_steps=1000,
    save_strategy="no",
    report_to=[], use_cpu=True, disable_tqdm=True,
)
callbacks = [StepLogCallback(), Stopwatch()]
Trainer(model=Model(), args=options, train_dataset=Rows(), callbacks=callbacks).train()
""",
    "lightning": """
import lightning as L
from traindyno.callbacks.lightning import StepLogCallback

class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = Model()

    def training_step(self, batch):
        return self.model(**batch)["loss"]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

class Stopwatch(L.Callback):
    def on_train_batch_end(self, *arguments, **options):
        lap()

L.Trainer(
    max_epochs=1, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
    callbacks=[StepLogCallback(), Stopwatch()],
).fit(Module(), torch.utils.data.DataLoader(Rows(), batch_size=8))
""",
}
# What these frameworks import late is imported once for all jobs.
# One write keeps a line whole: processes share their standard output.
PRINT = f"""
rate = {BATCH_SIZE} * {STEPS - FIRST_STEP} / (ends[-1] - ends[{FIRST_STEP - 1}])
os.write(1, f"stopwatch {{rate}}\\n".encode())
"""


@pytest.mark.parametrize("framework", SCRIPTS)
def test_the_logged_rate_is_the_stopwatchs(framework: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(COMMON + SCRIPTS[framework] + PRINT)
    end = run_forked(tmp_path, script, processes=2 if framework == "ddp" else 1)
    assert end.exit_code == 0, end.output
    (by_stopwatch, *_) = [
        float(line.split()[1]) for line in end.output.splitlines() if line.startswith("stopwatch")
    ]
    steps = end.of_kind("step")
    assert len(steps) == STEPS
    samples = sum(step["samples"] for step in steps[FIRST_STEP:])
    assert samples / (steps[-1]["end"] - steps[FIRST_STEP - 1]["end"]) == pytest.approx(
        by_stopwatch, rel=0.02
    )
