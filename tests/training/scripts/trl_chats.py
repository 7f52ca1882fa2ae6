"""Writes the rows and labels that TRL's SFTTrainer makes of conversations, as JSON.

Arguments: a folder of tokenizers, and a JSON file with rows by name: each a list with the rows of
one dataset, and the options of SFTConfig. A dataset that TRL refuses gives the error's text.
"""

import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from datasets import Dataset
from jinja2 import TemplateError
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

trl: Any = importlib.import_module("trl")
folder, asked = map(Path, sys.argv[1:])
questions = json.loads(asked.read_text())


def rows_of(name: str, rows: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(folder / name)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
    )
    with tempfile.TemporaryDirectory() as output:
        try:
            trainer = trl.SFTTrainer(
                model=LlamaForCausalLM(config),
                args=trl.SFTConfig(
                    output_dir=output,
                    use_cpu=True,
                    bf16=False,
                    report_to=[],
                    max_length=None,
                    **options,
                ),
                train_dataset=Dataset.from_list(rows),
                processing_class=tokenizer,
            )
        except (TemplateError, TypeError, ValueError, RuntimeError) as error:
            return str(error)
        dataset = trainer.train_dataset
        return [[row["input_ids"], row["labels"]] for row in dataset]


answers = [rows_of(*question) for question in questions]
sys.stdout.write(f"\n{json.dumps(answers)}\n")
