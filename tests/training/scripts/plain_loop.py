"""A plain PyTorch loop, alone or under torchrun.

"alone" and "independent" form no process group.
"""

import os
import sys
import time

import torch
from torch import distributed, nn

from traindyno.callbacks import step_log


def main(mode: str) -> None:
    if mode == "independent":
        step_log.independent()
    if "RANK" in os.environ and mode not in ("alone", "independent"):
        distributed.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(8, 4)
    target = torch.randn(8, 1)
    for number in range(6):
        with step_log.step(batch=(data, target)) as step:
            loss = nn.functional.mse_loss(model(data), target)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step.loss = loss
        if mode == "raise" and number == 2:
            raise ValueError("the third batch is broken")
        if mode == "memory" and number == 2:
            torch.empty(2**60)
    if distributed.is_initialized():
        distributed.barrier()
        time.sleep(0.2)  # torch 2.13's Gloo: its thread has to let go of the last collective first
        distributed.destroy_process_group()


main(sys.argv[1] if len(sys.argv) > 1 else "")
