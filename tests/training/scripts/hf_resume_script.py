"""A Trainer that resumes: six steps uninterrupted, and six of which an interruption took the last
checkpoint.
"""

import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from traindyno.callbacks.checkpoints import checkpoint_folder, newest_complete
from traindyno.callbacks.hf_trainer import StepLogCallback

ROWS: Any = [
    {"input_ids": torch.arange(8) + row % 40, "labels": torch.tensor(row % 2)} for row in range(32)
]
WIDTHS: Any = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
folder = checkpoint_folder()


def train(folder: str | None, last_step: int, *callbacks: TrainerCallback) -> Any:
    set_seed(0)
    model = BertForSequenceClassification(BertConfig(vocab_size=50, **WIDTHS))
    arguments = TrainingArguments(
        output_dir=folder,
        save_strategy="steps",
        save_steps=2,
        save_total_limit=2,
        max_steps=last_step,
        per_device_train_batch_size=4,
        lr_scheduler_type="constant",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=ROWS, callbacks=list(callbacks))
    trainer.train(resume_from_checkpoint=newest_complete(folder))
    trained: Any = trainer.model
    return trained.state_dict()


whole = train("whole", 6)
train(folder, 4, StepLogCallback())
assert folder is not None
with Path(folder, "checkpoint-4", "model.safetensors").open("r+b") as weights:
    weights.truncate(100)  # the upload was cut short
resumed = train(folder, 6, StepLogCallback())
assert all(torch.equal(resumed[name], tensor) for name, tensor in whole.items())
shutil.rmtree("whole")
