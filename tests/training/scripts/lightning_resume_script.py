"""A Lightning Trainer that resumes: three epochs uninterrupted, and three of which an earlier
attempt did two.
"""

from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

from tests.training.scripts.lightning_script import Regression
from traindyno.callbacks.checkpoints import checkpoint_folder
from traindyno.callbacks.lightning import StepLogCallback


def train(folder: str | None, epochs: int, *callbacks: Any) -> Any:
    L.seed_everything(0, verbose=False)
    model = Regression()
    rows = TensorDataset(torch.arange(96.0).reshape(24, 4) / 96, torch.arange(24.0).reshape(24, 1))
    trainer = L.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        # One file, replaced as a whole, needs no marker. At the end of an epoch: Lightning begins
        # its data anew.
        callbacks=[*callbacks, ModelCheckpoint(dirpath=folder, filename="last", every_n_epochs=1)],
    )
    last = Path(folder or ".", "last.ckpt")
    trainer.fit(
        model, DataLoader(rows, batch_size=12), ckpt_path=str(last) if last.exists() else None
    )
    return model.state_dict()


if __name__ == "__main__":
    whole = train("whole", 3)
    folder = checkpoint_folder()
    train(folder, 2, StepLogCallback())
    resumed = train(folder, 3, StepLogCallback())
    assert all(torch.equal(resumed[name], tensor) for name, tensor in whole.items())
