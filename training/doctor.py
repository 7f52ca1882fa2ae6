"""What this machine and environment are: versions, device, collectives. ``python -m training.doctor`` prints it."""

import json
import sys
from typing import Any

import torch

from traindyno.callbacks import environment


def environment_facts() -> dict[str, Any]:
    return {**environment.environment_facts(), "threads": torch.get_num_threads()}


if __name__ == "__main__":
    json.dump(environment_facts(), sys.stdout, indent=2)
