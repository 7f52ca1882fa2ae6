"""A loop with Accelerate, as its documentation shows it.

Argument: "default", or "cpu" (that the CPU is to be used).
"""

import sys
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindyno.callbacks import step_log

accelerator = Accelerator(cpu=sys.argv[1] == "cpu")
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(rows, batch_size=4))
for batch in loader:
    with step_log.step(batch=batch) as step:
        loss = nn.functional.mse_loss(model(batch[0]), batch[1])
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        step.loss = loss
if torch.distributed.is_initialized():
    time.sleep(0.2)  # torch 2.13's Gloo: its thread has to let go of the last collective first
    torch.distributed.destroy_process_group()
