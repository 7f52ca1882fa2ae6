"""A full copy of the model in every process; gradients are averaged in the backward pass, by
PyTorch or SageMaker.
"""

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from traindyno.core.run.processes import replica_count
from training.errors import MissingFromImage
from training.models.gradients import leaves_parameters_out
from training.models.objective import Objective
from training.process.process_group import start_process_group
from training.strategies import Setup
from training.strategies.whole_model import WholeModelStrategy

# Only AWS's own images contain it.
LIBRARY = "smdistributed.dataparallel.torch.torch_smddp"


class DataParallel(WholeModelStrategy):
    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.data_rank = setup.topology.rank
        self.data_world_size = replica_count(setup.settings, setup.topology.world_size)
        # One process has nothing to average: the wrapper would only copy gradients and split the
        # compiled graph.
        self._is_wrapped = self.data_world_size > 1 and not setup.accelerator.averages_gradients
        self._wrapped: DistributedDataParallel
        start_process_group(self._backend(), setup.topology, setup.accelerator.device)

    def _backend(self) -> str:
        return self._setup.accelerator.process_group_backend

    def _wrap(self, objective: Objective) -> nn.Module:
        if not self._is_wrapped:
            return objective
        device = self._setup.accelerator.device
        self._wrapped = DistributedDataParallel(
            objective,
            device_ids=[device] if device.type == "cuda" else None,
            gradient_as_bucket_view=True,
            # It searches the graph in every step, so only where it is needed.
            find_unused_parameters=leaves_parameters_out(objective.model, device),
        )
        return self._wrapped

    def _without_exchange(self) -> AbstractContextManager[None]:
        return self._wrapped.no_sync() if self._is_wrapped else nullcontext()

    def _after_backward(self) -> None:
        self._setup.accelerator.average_gradients(self._parameters)


class SageMakerDataParallel(DataParallel):
    def _backend(self) -> str:
        try:
            import_module(LIBRARY)  # registers the backend
        except ImportError as error:
            raise MissingFromImage(
                f"strategy smddp needs {LIBRARY}, which is not installed here ({error}); it is "
                "part of AWS's PyTorch 1.10 to 2.5 training images, for ml.p3dn.24xlarge, "
                "ml.p4d.24xlarge and ml.p4de.24xlarge. Elsewhere: strategy ddp"
            ) from error
        return "smddp"
