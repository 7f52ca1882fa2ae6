"""The environment variables of a job's processes.

Only those in INHERITED come from the user's shell.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.environment import REGION
from localcloud.home import Home
from localcloud.ports import LOOPBACK
from localcloud.run_repeats import measured_share
from localcloud.sagemaker_service.host.container_tree import LOOPBACK_INTERFACE, HostTree
from localcloud.sagemaker_service.host.host_processes import MARK_VARIABLE, process_mark
from localcloud.sagemaker_service.host.toolkit import (
    TORCHRUN,
    HostResources,
    ToolkitProgram,
    UnsupportedJob,
    toolkit_environment,
)
from localcloud.sagemaker_service.jobs.job import SecondaryStatus, TrainingJob
from localcloud.sagemaker_service.jobs.job_work import is_shared
from localcloud.sagemaker_service.settings import ServiceSettings
from traindyno.core.instances.instance_types import LOCAL_PREFIX
from traindyno.core.jobs.journal_format import (
    MASTER_ADDRESS_VARIABLE,
    MASTER_PORT_VARIABLE,
    OPT_ML_VARIABLE,
    TORCHRUN_VARIABLE,
)
from traindyno.core.step_log.line import LAUNCH_VARIABLE, SCATTER_VARIABLE
from traindyno.sagemaker.images import LOCAL_XLA_IMAGE

READY_MARK = ".installed"
# PyTorch/XLA can't be installed together with the service's packages. Any other image runs on
# this interpreter.
XLA_FOLDER = "xla"
INHERITED = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LC_ALL",
        "TZ",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HF_HOME",
        "HF_HUB_OFFLINE",
        "HF_DATASETS_OFFLINE",
        "TRANSFORMERS_OFFLINE",
        "CUDA_VISIBLE_DEVICES",
    }
)
# pip's own settings, such as PIP_FIND_LINKS and PIP_INDEX_URL: only pip gets them.
PIP_PREFIX = "PIP_"
# With these variables a process can't read real credentials, and no local service answers it.
NO_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImage:
    """The Python that stands for an image on this machine."""

    python: str
    #: Variables of every job of the image. The job's own variables take precedence.
    variables: Mapping[str, str] = field(default_factory=dict)


def find_local_image(image_uri: str, settings: ServiceSettings) -> LocalImage:
    """The environment is searched for each job, so that a new one is found without a restart."""
    if image_uri != LOCAL_XLA_IMAGE:
        return LocalImage(python=sys.executable)
    folder: Path = settings.environments_folder / XLA_FOLDER
    if not (folder / READY_MARK).is_file():
        raise UnsupportedJob(
            f"image {image_uri} was not found on this machine: its environment is not in {folder}; "
            "make it with make xla, then run the suite again"
        )
    return LocalImage(python=str(folder / "bin" / "python"), variables={"PJRT_DEVICE": "CPU"})


def local_credentials(settings: ServiceSettings) -> dict[str, str]:
    """The variables with which the local AWS services answer a process.

    They keep it from reading real credentials.
    """
    return {**NO_CREDENTIALS, "AWS_ACCESS_KEY_ID": settings.access_key_id}


def process_environment(
    job: TrainingJob,
    program: ToolkitProgram,
    tree: HostTree,
    resources: HostResources,
    *,
    image: LocalImage,
    packages: Path | None,
    settings: ServiceSettings,
    shell: Mapping[str, str],
    temporary: Path,
) -> dict[str, str]:
    """The environment of a job's processes. The job's own variables take precedence.

    Args:
        job: The training job.
        program: The program that the toolkit starts.
        tree: The folders of the host.
        resources: The cores, GPUs and processes of the host.
        image: The stand-in of the job's image.
        packages: The folder of the packages that the source's requirements.txt adds, if any.
        settings: The settings of the service.
        shell: The environment of the service itself.
        temporary: The folder of the job's temporary files.
    """
    threads = max(resources.core_count // resources.processes, 1)
    environment = {name: value for name, value in shell.items() if name in INHERITED}
    environment |= local_credentials(settings)
    environment |= {
        "AWS_ENDPOINT_URL": settings.aws_endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "TRAINING_JOB_NAME": job.name,
        "TRAINING_JOB_ARN": job.arn,
        # MKL_NUM_THREADS is not set here, because it would override the suite's setting.
        "OMP_NUM_THREADS": str(threads),
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(temporary),
        "PYTHONPATH": os.pathsep.join(
            str(folder) for folder in (tree.root / "code", packages) if folder is not None
        ),
        MARK_VARIABLE: process_mark(job, settings),
        LAUNCH_VARIABLE: str(_launch_count(job)),
    }
    if job.instance_count == 1:
        # With several hosts, the job's own code names the interface, as it has to on SageMaker.
        environment["GLOO_SOCKET_IFNAME"] = LOOPBACK_INTERFACE
    if packages is not None:
        environment["PATH"] = f"{packages / 'bin'}{os.pathsep}{environment.get('PATH', '')}"
    environment |= image.variables
    if is_shared(job):
        environment |= _parent_variables(tree, resources)
    scatter = measured_share(Home(settings.state_folder.parent))
    if scatter is not None and job.instance_type.startswith(LOCAL_PREFIX):
        environment[SCATTER_VARIABLE] = f"{scatter:.4f}"
    environment |= toolkit_environment(job, program, tree, resources)
    return environment | {
        name: tree.localised(value) for name, value in job.request.get("Environment", {}).items()
    }


def _launch_count(job: TrainingJob) -> int:
    return sum(transition.status is SecondaryStatus.TRAINING for transition in job.transitions)


def _parent_variables(tree: HostTree, resources: HostResources) -> dict[str, str]:
    """The variables from which a shared job's parent learns that all hosts are this machine."""
    return {
        OPT_ML_VARIABLE: str(tree.root),
        MASTER_ADDRESS_VARIABLE: LOOPBACK,
        MASTER_PORT_VARIABLE: str(resources.master_port),
        TORCHRUN_VARIABLE: str(TORCHRUN),
    }


def pip_environment(job: TrainingJob, shell: Mapping[str, str]) -> dict[str, str]:
    """What pip gets when it installs the source's requirements: what the job inherits, and pip's
    own settings.
    """
    pip_settings = {
        name: value
        for name, value in shell.items()
        if name in INHERITED or name.startswith(PIP_PREFIX)
    }
    return {**pip_settings, **NO_CREDENTIALS, **job.request.get("Environment", {})}
