"""A script with Lightning: eight steps of four rows, an evaluation and a checkpoint at the end of
the epoch.
"""

import sys
import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindyno.callbacks.lightning import StepLogCallback


class Regression(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        rows, target = batch
        return nn.functional.mse_loss(self.layer(rows), target)

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        self.log("mse", self.training_step(batch), sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    torch.manual_seed(0)
    rows = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    processes = int(sys.argv[2])
    L.Trainer(
        default_root_dir=sys.argv[1],
        max_epochs=1,
        accelerator="cpu",
        devices=processes,
        strategy="ddp" if processes > 1 else "auto",
        accumulate_grad_batches=2,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[StepLogCallback()],
    ).fit(Regression(), DataLoader(rows, batch_size=4), DataLoader(rows, batch_size=4))
    if torch.distributed.is_initialized():
        time.sleep(0.2)  # torch 2.13's Gloo: its thread has to let go of the last collective first
        torch.distributed.destroy_process_group()
