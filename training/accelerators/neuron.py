"""A NeuronCore through TorchNeuron, PyTorch's device for Trainium 2 and 3. Never run: written from documentation."""

from importlib import import_module

import torch

from traindyno.callbacks.clock import HostClock
from training.data.batch import Batch
from training.errors import MissingFromImage

LIBRARY = "torch_neuronx"


class Neuron:
    name = "neuron"
    process_group_backend = "cpu:gloo,neuron:neuron"
    average_gradients = None

    def __init__(self) -> None:
        try:
            import_module(LIBRARY)  # registers the device, its collectives and its compiler
        except ImportError as error:
            raise MissingFromImage(
                f"compiler neuron needs TorchNeuron ({LIBRARY}), which this environment lacks ({error}); "
                "it runs on ml.trn2 and ml.trn3 instances with images/neuron. Elsewhere: compiler inductor"
            ) from error
        # torchrun shows each process one core, so that the device needs no number.
        self.device = torch.device("neuron")

    def make_clock(self) -> HostClock:
        return HostClock()

    def peak_memory_bytes(self) -> int | None:
        return None

    def to_device(self, batch: Batch) -> Batch:
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}

    def end_step(self) -> None:
        pass
