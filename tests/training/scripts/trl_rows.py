"""Writes the rows that TRL's SFTTrainer makes of texts, as JSON.

Arguments: a tokenizer's folder, and a JSON file with the texts.
"""

import importlib
import json
import sys
import tempfile
from pathlib import Path

from datasets import Dataset
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

trl = importlib.import_module("trl")
folder, texts = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
    )
)
with tempfile.TemporaryDirectory() as output:
    trainer = trl.SFTTrainer(
        model=model,
        args=trl.SFTConfig(output_dir=output, use_cpu=True, bf16=False, report_to=[]),
        train_dataset=Dataset.from_dict({"text": json.loads(Path(texts).read_text())}),
        processing_class=tokenizer,
    )
    sys.stdout.write(f"\n{json.dumps(list(trainer.train_dataset['input_ids']))}\n")
