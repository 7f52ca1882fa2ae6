"""AWS's images for PyTorch: their repositories, and the version in a tag."""

import re

IMAGE = re.compile(
    r"(?:^|/)(?P<repository>[a-z0-9-]+):(?P<major>\d+)\.(?P<minor>\d+)(?:\.(?P<patch>\d+))?"
)
SMP_V2_REPOSITORY = "smdistributed-modelparallel"
# The SageMaker SDK selects images of these by a framework version.
VERSIONED_REPOSITORIES = (
    "pytorch-training",
    "huggingface-pytorch-training",
    "pytorch-training-neuron",
    "pytorch-trcomp-training",
    "huggingface-pytorch-training-neuronx",
    "huggingface-pytorch-trcomp-training",
    SMP_V2_REPOSITORY,
)
# SageMaker starts several processes of earlier versions with mpirun.
FIRST_TORCHRUN_VERSION = (1, 13, 1)


def pytorch_version(image: str) -> tuple[int, int, int] | None:
    """Version of PyTorch by the tag of an AWS image; None if the image is another."""
    match = IMAGE.search(image)
    if match is None or match["repository"] not in VERSIONED_REPOSITORIES:
        return None
    return int(match["major"]), int(match["minor"]), int(match["patch"] or 0)
