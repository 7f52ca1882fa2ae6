"""One process of a group that builds its part of a model and may save the model; it writes its peak resident memory."""

import json
import os
import sys
from collections import deque
from pathlib import Path
from typing import Any

import torch

from bench.memory import workload_document
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite_file import parse_settings, parse_workload
from training.accelerators.cpu import Cpu
from training.compilers.none import NoCompiler
from training.models.model import build_model, empty_model
from training.models.precision import number_format
from training.process.process_group import end_process_group
from training.process.topology import read_topology
from training.run.saving import save_model
from training.strategies import Setup, build_strategy

LENGTH = 16


def build(
    config: dict[str, Any], values: dict[str, Any], *, model_path: str | None, save_folder: str | None
) -> tuple[int, int]:
    """Peak bytes when this process's part is built, and at the end. Initialises the model if no path is given."""
    workload = parse_workload(
        workload_document(config, "causal-lm", LENGTH)
        | {"model": {"config": config} if model_path is None else {"path": model_path}}
    )
    settings = parse_settings({"instance": "local.cpu", "batch_size_per_device": 1, **values})
    topology, accelerator = read_topology(), Cpu()
    setup = Setup(
        settings=settings,
        task=Task.CAUSAL_LM,
        topology=topology,
        accelerator=accelerator,
        compiler=NoCompiler(),
        number_format=number_format(settings.precision, accelerator.device),
    )
    strategy = build_strategy(setup)
    blueprint = build_model(workload, settings, None, model_path=model_path)
    strategy.place(blueprint)
    built = peak_resident_bytes()
    if save_folder is not None:
        tensors = strategy.stream_state_dict()
        if topology.is_first:
            save_model(tensors, empty_model(Task.CAUSAL_LM, blueprint.model.config), None, Path(save_folder))
        deque(tensors, maxlen=0)
    end_process_group()
    return built, peak_resident_bytes()


def peak_resident_bytes() -> int:
    """Peak of this process since it started its program. getrusage's figure includes the process that forked it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) * 1024


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.stdout.write(json.dumps(build(**json.loads(sys.argv[1]))))
    sys.stdout.flush()
    os._exit(0)  # Python's own teardown waits for peers
