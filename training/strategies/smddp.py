"""Data parallel over SageMaker's own collectives, which only its frozen images contain."""

from importlib import import_module

from training.errors import MissingFromImage
from training.strategies import Setup, TrainingStrategy
from training.strategies.ddp import DataParallel

LIBRARY = "smdistributed.dataparallel.torch.torch_smddp"


class SageMakerDataParallel(DataParallel):
    def _backend(self) -> str:
        try:
            import_module(LIBRARY)  # registers the backend
        except ImportError as error:
            raise MissingFromImage(
                f"strategy smddp needs {LIBRARY}, which is not installed here ({error}); it is part of AWS's "
                "PyTorch 1.10 to 2.5 training images, for ml.p3dn.24xlarge, ml.p4d.24xlarge and ml.p4de.24xlarge. "
                "Elsewhere: strategy ddp"
            ) from error
        return "smddp"


def build(setup: Setup) -> TrainingStrategy:
    return SageMakerDataParallel(setup)
