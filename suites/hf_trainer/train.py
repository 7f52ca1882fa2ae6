"""A training script as anyone might have it: a small GPT-2 on the bytes of text files, with Hugging
Face's Trainer.
"""

import os
import time
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments

from traindyno.callbacks import step_log
from traindyno.callbacks.hf_trainer import StepLogCallback

BLOCK_BYTES = 64


class Blocks(Dataset[dict[str, torch.Tensor]]):
    def __init__(self, folder: str) -> None:
        text = b"".join(path.read_bytes() for path in sorted(Path(folder).rglob("*.txt")))
        block_count = len(text) // BLOCK_BYTES
        self.blocks = torch.frombuffer(bytearray(text), dtype=torch.uint8)[
            : block_count * BLOCK_BYTES
        ].view(block_count, BLOCK_BYTES)

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = self.blocks[index].long()
        return {"input_ids": tokens, "labels": tokens}


def main() -> None:
    parser = HfArgumentParser(TrainingArguments)
    parser.set_defaults(
        output_dir=os.environ["SM_OUTPUT_DATA_DIR"],
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        # without it, Trainer's processes on a CPU train apart, each on all data
        use_cpu=not torch.cuda.is_available(),
    )
    (arguments,) = parser.parse_args_into_dataclasses()
    arguments.seed = step_log.seed()
    torch.manual_seed(arguments.seed)
    shape = {"vocab_size": 256, "n_positions": BLOCK_BYTES, "n_embd": 64, "n_layer": 2, "n_head": 2}
    model = GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=None, eos_token_id=None))
    data = Blocks(os.environ["SM_CHANNEL_TRAIN"])
    trainer = Trainer(
        model=model, args=arguments, train_dataset=data, callbacks=[StepLogCallback()]
    )
    trainer.train()
    trainer.save_model(os.environ["SM_MODEL_DIR"])
    if torch.distributed.is_initialized():
        time.sleep(0.2)  # torch 2.13's Gloo: its thread has to let go of the last collective first
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
