"""The limits of CreateTrainingJob, checked before any job is submitted."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from traindyno.core.documents.problems import shown
from traindyno.core.errors import Problem
from traindyno.core.instances.instance_types import efa_environment, find_instance_type
from traindyno.core.suite.choices import Task
from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.workload import Workload

# 100 hyperparameters, of which up to ten are the SDK's; values of 2500 characters as JSON.
HYPERPARAMETER_KEYS = 90
HYPERPARAMETER_CHARACTERS = 2500
SDK_PREFIX = "sagemaker_"
# The training toolkit starts SMP v1 if it gets the first. It passes the second to mpirun.
MODEL_PARALLEL_PARAMETERS = "mp_parameters"
MPI_OPTIONS = "sagemaker_mpi_custom_mpi_options"
SMDDP_OPTIONS = "sagemaker_distributed_dataparallel_custom_mpi_options"
OWN_ENVIRONMENT_PREFIX = "TRAINDYNO_"
# With those of the lab.
ENVIRONMENT_KEYS = 100
ENVIRONMENT_CHARACTERS = 512
ENVIRONMENT_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,511}")
TRAIN_CHANNEL = "train"
MODEL_CHANNEL = "model"
TOKENIZER_CHANNEL = "tokenizer"
# The channel "code" contains the source tarball for a container without a network.
RESERVED_CHANNELS = (TRAIN_CHANNEL, MODEL_CHANNEL, TOKENIZER_CHANNEL, "code")
CHANNEL_COUNT = 16
# SageMaker's limit, less the channels of the document and of the code.
SHARED_CHANNELS = 18
CHANNEL_NAME = re.compile(r"[A-Za-z0-9.\-_]{1,64}")
IMAGE_CHARACTERS = 255
METRIC_COUNT, METRIC_CHARACTERS = 40, 500
TRAINING_PLAN_ARN = re.compile(r"arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:training-plan/.+")

EC2_RESERVATION = re.compile(r"(^|[:/])cr-[0-9a-f]|capacity-reservation|capacity-block")


def check_job_limits(suite: Suite) -> Iterator[Problem]:
    yield from _check_hyperparameters(suite)
    yield from _check_environment(suite)
    yield from _check_channels(suite.workload)
    yield from _check_images(suite)
    yield from _check_metrics(suite.job.metrics)
    for name, arn in suite.training_plans.items():
        if not TRAINING_PLAN_ARN.fullmatch(arn):
            expected = "arn:aws:sagemaker:<region>:<account>:training-plan/<name>"
            yield Problem(path=f"training_plans.{name}", message=f'got "{arn}"{_hint(arn)}, expected {expected}')


def _hint(arn: str) -> str:
    if not EC2_RESERVATION.search(arn):
        return ""
    return (
        " of EC2: training jobs can't use EC2 capacity reservations (reserve a SageMaker training plan for the target"
        " training-job)"
    )


def _check_hyperparameters(suite: Suite) -> Iterator[Problem]:
    varied = [
        name.removeprefix(HYPERPARAMETER_PREFIX) for name in suite.matrix if name.startswith(HYPERPARAMETER_PREFIX)
    ]
    seed = suite.measurement.seed_argument
    names = {*suite.workload.hyperparameters, *varied, *([seed] if seed else [])}
    if len(names) > HYPERPARAMETER_KEYS:
        message = f"got {len(names)} names, expected at most {HYPERPARAMETER_KEYS}"
        yield Problem(path="workload.hyperparameters", message=message)
    # A shared job has them in its document, and a run that is left alone in its request.
    given: dict[str, Iterable[object]] = {
        f"workload.hyperparameters.{name}": [value] for name, value in suite.workload.hyperparameters.items()
    }
    given |= {f"matrix.{name}": _values(suite, name) for name in suite.matrix if name.startswith(HYPERPARAMETER_PREFIX)}
    for path, values in given.items():
        size = max(len(json.dumps(value)) for value in values)
        if size > HYPERPARAMETER_CHARACTERS:
            yield Problem(path=path, message=f"got {size} characters, expected at most {HYPERPARAMETER_CHARACTERS}")
    for name, value in suite.workload.hyperparameters.items():
        path = f"workload.hyperparameters.{name}"
        if name in (MPI_OPTIONS, SMDDP_OPTIONS) and not isinstance(value, str):
            yield Problem(path=path, message=f"got {shown(value)}, expected mpirun's options as one text")
        is_for_mpi = name == MPI_OPTIONS and MODEL_PARALLEL_PARAMETERS in names
        if name.startswith(SDK_PREFIX) and name != SMDDP_OPTIONS and not is_for_mpi:
            yield Problem(
                path=path,
                message=f"{SDK_PREFIX} is the prefix of the launcher's hyperparameters, expected a name without it",
            )


def _check_environment(suite: Suite) -> Iterator[Problem]:
    # Of the lab, at most: the step log's directory, the run's id, and those that the job needs.
    own = 2 + suite.keeps_checkpoints + (suite.workload.task is Task.SCRIPT) + _efa_variables(suite)
    given = suite.workload.environment
    if len(given) + own > ENVIRONMENT_KEYS:
        message = (
            f"got {len(given)} names, expected at most {ENVIRONMENT_KEYS - own}: a job has at most {ENVIRONMENT_KEYS},"
            f" and a job of this suite gets {own} from the lab"
        )
        yield Problem(path="workload.environment", message=message)
    for name, value in given.items():
        path = f"workload.environment.{name}"
        if not ENVIRONMENT_NAME.fullmatch(name) or name.startswith(OWN_ENVIRONMENT_PREFIX):
            message = (
                f"got {shown(name)}, expected letters, digits and _, not beginning with a digit or "
                f"{OWN_ENVIRONMENT_PREFIX}"
            )
            yield Problem(path=path, message=message)
        if len(value) > ENVIRONMENT_CHARACTERS:
            message = f"got {len(value)} characters, expected at most {ENVIRONMENT_CHARACTERS}"
            yield Problem(path=path, message=message)


def _efa_variables(suite: Suite) -> int:
    """Most EFA variables of a job that the suite does not set itself."""
    most = max((count for count in _values(suite, "instance_count") if isinstance(count, int)), default=1)
    named = [name for name in _values(suite, "instance") if isinstance(name, str)]
    types = filter(None, map(find_instance_type, named))
    return max((len(efa_environment(each, most).keys() - suite.workload.environment) for each in types), default=0)


def _values(suite: Suite, name: str) -> Iterator[object]:
    """All values of a setting, of any point of the grid; the suite may not be checked yet."""
    points = (suite.training, suite.baseline, *suite.include)
    yield from (point[name] for point in points if name in point)
    yield from suite.matrix.get(name, ())


def _check_channels(workload: Workload) -> Iterator[Problem]:
    if len(workload.channels) > CHANNEL_COUNT:
        message = f"got {len(workload.channels)} channels, expected at most {CHANNEL_COUNT}"
        yield Problem(path="workload.channels", message=message)
    for name in workload.channels:
        if name in RESERVED_CHANNELS or not CHANNEL_NAME.fullmatch(name):
            message = f"got {shown(name)}, expected letters, digits, . _ - and none of {', '.join(RESERVED_CHANNELS)}"
            yield Problem(path=f"workload.channels.{name}", message=message)


def _check_images(suite: Suite) -> Iterator[Problem]:
    images = {"workload.image": suite.workload.image, "training.image": suite.training.get("image")}
    images |= {f"matrix.image[{index}]": image for index, image in enumerate(suite.matrix.get("image", ()))}
    for path, image in images.items():
        if image is not None and len(image) > IMAGE_CHARACTERS:
            yield Problem(path=path, message=f"got {len(image)} characters, expected at most {IMAGE_CHARACTERS}")


def _check_metrics(metrics: Mapping[str, str]) -> Iterator[Problem]:
    if len(metrics) > METRIC_COUNT:
        yield Problem(path="job.metrics", message=f"got {len(metrics)} metrics, expected at most {METRIC_COUNT}")
    for name, regex in metrics.items():
        if len(regex) > METRIC_CHARACTERS:
            message = f"got {len(regex)} characters, expected at most {METRIC_CHARACTERS}"
            yield Problem(path=f"job.metrics.{name}", message=message)
