"""A training script as anyone might have it: prices of houses from a CSV file, with Lightning."""

import argparse
import csv
import os
import time
from pathlib import Path

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindyno.callbacks import step_log
from traindyno.callbacks.lightning import StepLogCallback


class Prices(lightning.LightningModule):
    def __init__(self, feature_count: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(feature_count, 256), nn.ReLU(), nn.Linear(256, 1))

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        features, prices = batch
        return nn.functional.mse_loss(self.layers(features), prices)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def read_houses(folder: str) -> TensorDataset:
    (path,) = Path(folder).rglob("*.csv")
    with path.open(newline="") as file:
        rows = torch.tensor(
            [[float(value) for value in row.values()] for row in csv.DictReader(file)]
        )
    rows = (rows - rows.mean(dim=0)) / rows.std(dim=0)
    return TensorDataset(rows[:, :-1], rows[:, -1:])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch_size", type=int, default=32)
    arguments = parser.parse_args()

    lightning.seed_everything(step_log.seed())
    houses = read_houses(os.environ["SM_CHANNEL_TRAIN"])
    model = Prices(houses.tensors[0].shape[1])
    trainer = lightning.Trainer(
        max_epochs=arguments.epochs,
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        num_nodes=int(os.environ.get("GROUP_WORLD_SIZE", "1")),
        default_root_dir=os.environ["SM_OUTPUT_DATA_DIR"],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[StepLogCallback()],
    )
    trainer.fit(model, DataLoader(houses, batch_size=arguments.batch_size, shuffle=True))
    trainer.save_checkpoint(Path(os.environ["SM_MODEL_DIR"], "model.ckpt"))
    if torch.distributed.is_initialized():
        time.sleep(0.2)  # torch 2.13's Gloo: its thread has to let go of the last collective first
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
