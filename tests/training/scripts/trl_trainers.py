"""Trains with a trainer of TRL itself, under the step log's callback, and writes how many pairs,
rows or prompts it went through.

Arguments: the trainer's name, and the folder of a tokenizer.
"""

import importlib
import sys
import tempfile

from datasets import Dataset
from transformers import (
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
)

from traindyno.callbacks.hf_trainer import StepLogCallback

ROWS = 10
EPOCHS = 2
GENERATIONS = 2  # answers to each prompt
# Where each trainer is, and what its configuration has beside the common options
PLACES = {
    "CPO": ("trl.experimental.cpo", {}),
    "DPO": ("trl", {}),
    "GRPO": (
        "trl",
        {"num_generations": GENERATIONS, "max_completion_length": 4, "num_iterations": 2},
    ),
    "KTO": ("trl", {}),
    "ORPO": ("trl.experimental.orpo", {}),
    "RLOO": ("trl", {"num_generations": GENERATIONS, "max_completion_length": 4}),
    "Reward": ("trl", {}),
}
REWARDED = ("GRPO", "RLOO")

name, folder = sys.argv[1:]
place, options = PLACES[name]
trl = importlib.import_module(place)
tokenizer = AutoTokenizer.from_pretrained(folder)
kind = LlamaForSequenceClassification if name == "Reward" else LlamaForCausalLM
config = LlamaConfig(
    vocab_size=len(tokenizer),
    hidden_size=8,
    intermediate_size=8,
    num_hidden_layers=1,
    num_attention_heads=1,
    pad_token_id=tokenizer.pad_token_id,
)
config.num_labels = 1
numbers = range(ROWS)
columns: dict[str, list[object]] = {"prompt": [f"a question {number}" for number in numbers]}
if name == "KTO":
    columns |= {
        "completion": [f" answer {n}" for n in numbers],
        "label": [n % 2 == 0 for n in numbers],
    }
elif name not in REWARDED:
    columns |= {
        "chosen": [f" it is {number} and more" for number in numbers],
        "rejected": [f" it is not {number}" for number in numbers],
    }
answered: list[str] = []


def reward(completions: list[str], **_: object) -> list[float]:
    answered.extend(completions)
    return [float(len(completion)) for completion in completions]


with tempfile.TemporaryDirectory() as output:
    kind(config).save_pretrained(output)  # TRL loads its reference from where the model was
    trainer = getattr(trl, f"{name}Trainer")(
        model=kind.from_pretrained(output),
        args=getattr(trl, f"{name}Config")(
            output_dir=output,
            use_cpu=True,
            bf16=False,
            report_to=[],
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            num_train_epochs=EPOCHS,
            **options,
        ),
        train_dataset=Dataset.from_dict(columns),
        processing_class=tokenizer,
        callbacks=[StepLogCallback()],
        **({"reward_funcs": reward} if name in REWARDED else {}),
    )
    trainer.train()
    went_through = len(answered) // GENERATIONS if name in REWARDED else ROWS * EPOCHS
    sys.stdout.write(f"\n{went_through}\n")
