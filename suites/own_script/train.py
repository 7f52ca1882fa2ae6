"""A training script as anyone might have it: prices of houses from a CSV file, in plain PyTorch."""

import argparse
import csv
import os
from pathlib import Path

import torch

from traindyno.callbacks import step_log


def read_houses(folder: str) -> tuple[torch.Tensor, torch.Tensor]:
    (path,) = Path(folder).rglob("*.csv")
    with path.open(newline="") as file:
        rows = torch.tensor(
            [[float(value) for value in row.values()] for row in csv.DictReader(file)]
        )
    rows = (rows - rows.mean(dim=0)) / rows.std(dim=0)
    return rows[:, :-1], rows[:, -1:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch_size", type=int, default=32)
    arguments = parser.parse_args()

    torch.manual_seed(step_log.seed())
    features, prices = read_houses(os.environ["SM_CHANNEL_TRAIN"])
    model = torch.nn.Sequential(
        torch.nn.Linear(features.shape[1], 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(arguments.epochs):
        order = torch.randperm(len(features))
        for rows in order.split(arguments.batch_size):
            with step_log.step(samples=len(rows)) as step:
                loss = torch.nn.functional.mse_loss(model(features[rows]), prices[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step.loss = loss.item()
    torch.save(model.state_dict(), Path(os.environ["SM_MODEL_DIR"]) / "model.pt")


if __name__ == "__main__":
    main()
