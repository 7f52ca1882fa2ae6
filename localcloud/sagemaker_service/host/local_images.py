"""Finds the Python environment of this machine that replaces a job's container image."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.sagemaker_service.host.toolkit import UnsupportedJob
from localcloud.sagemaker_service.settings import ServiceSettings
from traindyno.sagemaker.images import LOCAL_XLA_IMAGE

READY_MARK = ".installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImage:
    """``variables`` are set in every job of the image. The job's own variables take precedence."""

    python: str
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparateEnvironment:
    folder: str
    made_by: str
    variables: Mapping[str, str]


# The packages of these images can't be installed together with the service's. Any other image runs on
# ``ServiceSettings.python``.
SEPARATE_ENVIRONMENTS: Mapping[str, SeparateEnvironment] = {
    LOCAL_XLA_IMAGE: SeparateEnvironment(folder="xla", made_by="make xla", variables={"PJRT_DEVICE": "CPU"}),
}


def find_local_image(image_uri: str, settings: ServiceSettings) -> LocalImage:
    """The environment is searched for each job, so that a new one is found without a restart."""
    environment = SEPARATE_ENVIRONMENTS.get(image_uri)
    if environment is None:
        return LocalImage(python=settings.python)
    folder: Path = settings.environments_folder / environment.folder
    if not (folder / READY_MARK).is_file():
        raise UnsupportedJob(
            f"image {image_uri} was not found on this machine: its environment is not in {folder}; make it with "
            f"{environment.made_by}, then run the suite again"
        )
    return LocalImage(python=str(folder / "bin" / "python"), variables=environment.variables)
