"""Writes the losses of the steps of TRL's SFTTrainer on conversations, in their order, as JSON.

Arguments: a folder with a model and its tokenizer, and a JSON file with the rows, in the order of
the steps, and the arguments of SFTConfig.
"""

import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from datasets import Dataset
from torch.utils.data import SequentialSampler
from transformers import AutoModelForCausalLM, AutoTokenizer

trl: Any = importlib.import_module("trl")
folder, asked = map(Path, sys.argv[1:])
question = json.loads(asked.read_text())
losses: list[float] = []


class InOrder(trl.SFTTrainer):
    """Keeps the order of the rows, and the losses as they are computed."""

    def _get_train_sampler(self, train_dataset: Any = None) -> SequentialSampler:
        return SequentialSampler(train_dataset or self.train_dataset)

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        loss = super().training_step(*args, **kwargs)
        losses.append(loss.item())
        return loss


with tempfile.TemporaryDirectory() as output:
    trainer = InOrder(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype="float32"),
        args=trl.SFTConfig(
            output_dir=output,
            use_cpu=True,
            bf16=False,
            report_to=[],
            save_strategy="no",
            lr_scheduler_type="constant",
            max_grad_norm=0.0,
            gradient_checkpointing=False,
            disable_tqdm=True,
            **question["options"],
        ),
        train_dataset=Dataset.from_list(question["rows"]),
        processing_class=AutoTokenizer.from_pretrained(folder),
    )
    trainer.train()
sys.stdout.write(f"\n{json.dumps(losses)}\n")
