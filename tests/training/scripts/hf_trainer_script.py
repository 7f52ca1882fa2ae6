"""A script with Hugging Face's Trainer: two accumulated batches of four per step and an evaluation
half-way.

Arguments: a folder, the number of rows, and "unsaid" (that the CPU is to be used), "nan" (a broken
weight), "own-log" (a loss function that logs) or "packing" (arguments with TRL's names).
"""

import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from traindyno.callbacks.hf_trainer import StepLogCallback

generator = torch.Generator().manual_seed(0)
tokens = torch.randint(5, 50, (int(sys.argv[2]), 8), generator=generator)
ROWS: Any = [
    {"input_ids": row, "labels": torch.randint(0, 2, (), generator=generator)} for row in tokens
]
model = BertForSequenceClassification(
    BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
)


class LogsInItsLoss(Trainer):
    def compute_loss(self, *arguments: Any, **options: Any) -> Any:
        self.log({"batch_loss": 1.0})
        return super().compute_loss(*arguments, **options)


@dataclass
class PackingArguments(TrainingArguments):
    packing: bool = True
    max_length: int = 8


torch.manual_seed(0)
if sys.argv[3:] == ["nan"]:
    torch.nn.init.constant_(model.classifier.weight, float("nan"))
arguments = (PackingArguments if sys.argv[3:] == ["packing"] else TrainingArguments)(
    output_dir=sys.argv[1],
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    max_steps=4,
    logging_steps=1,
    eval_strategy="steps",
    eval_steps=2,
    save_strategy="steps",
    save_steps=2,
    report_to=[],
    use_cpu=sys.argv[3:] != ["unsaid"],
    disable_tqdm=True,
)
trainer_class = LogsInItsLoss if sys.argv[3:] == ["own-log"] else Trainer
trainer_class(
    model=model,
    args=arguments,
    train_dataset=ROWS,
    eval_dataset=ROWS,
    callbacks=[StepLogCallback()],
).train()
if torch.distributed.is_initialized():
    time.sleep(0.2)  # torch 2.13's Gloo: its thread has to let go of the last collective first
    torch.distributed.destroy_process_group()
