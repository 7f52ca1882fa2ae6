"""One process, one device, no communication: the reference for the other strategies."""

from training.errors import WorkloadError
from training.strategies import Setup, TrainingStrategy
from training.strategies.whole_model import WholeModelStrategy


def build(setup: Setup) -> TrainingStrategy:
    if setup.topology.world_size != 1:
        raise WorkloadError(
            f"strategy single was started with {setup.topology.world_size} processes; expected one process, "
            "or strategy ddp"
        )
    return WholeModelStrategy(setup)
