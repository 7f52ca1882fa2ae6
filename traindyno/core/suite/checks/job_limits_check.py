"""The limits of CreateTrainingJob, checked before any job is submitted."""

import json
import re
from collections.abc import Iterator
from typing import Any

from traindyno.core.documents.problems import shown
from traindyno.core.errors import Problem
from traindyno.core.instances.instance_types import efa_environment, find_instance_type
from traindyno.core.run.settings import HYPERPARAMETER_PREFIX
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import Purchase, Task
from traindyno.core.suite.suite import Suite

# 100 hyperparameters, of which up to ten are the SDK's; values of 2500 characters as JSON.
HYPERPARAMETER_KEYS = 90
HYPERPARAMETER_CHARACTERS = 2500
SDK_PREFIX = "sagemaker_"
# The training toolkit starts SMP v1 if it gets the first. It passes the second to mpirun.
MODEL_PARALLEL_PARAMETERS = "mp_parameters"
MPI_OPTIONS = "sagemaker_mpi_custom_mpi_options"
SMDDP_OPTIONS = "sagemaker_distributed_dataparallel_custom_mpi_options"
OWN_ENVIRONMENT_PREFIX = "TRAINDYNO_"
# With the lab's own channels.
ENVIRONMENT_KEYS = 100
ENVIRONMENT_CHARACTERS = 512
ENVIRONMENT_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,511}")
TRAIN_CHANNEL = "train"
MODEL_CHANNEL = "model"
TOKENIZER_CHANNEL = "tokenizer"
CHAT_TEMPLATE_CHANNEL = "chat_template"
# It contains the source tarball for a container without a network.
CODE_CHANNEL = "code"
RESERVED_CHANNELS = (
    TRAIN_CHANNEL,
    MODEL_CHANNEL,
    TOKENIZER_CHANNEL,
    CHAT_TEMPLATE_CHANNEL,
    CODE_CHANNEL,
)
CHANNEL_COUNT = 16
# SageMaker's limit, less the channels of the document and of the code.
SHARED_CHANNELS = 18
CHANNEL_NAME = re.compile(r"[A-Za-z0-9.\-_]{1,64}")
IMAGE_CHARACTERS = 255
METRIC_COUNT = 40
METRIC_CHARACTERS = 500


def check_job_limits(suite: Suite) -> Iterator[Problem]:
    for path, size, most, counted in _sizes(suite):
        if size > most:
            yield Problem(path=path, message=f"got {size} {counted}, expected at most {most}")
    yield from _check_launcher_names(suite)
    yield from _check_metrics(suite)
    yield from _check_environment(suite)
    yield from _check_channel_names(suite.workload)


def _sizes(suite: Suite) -> Iterator[tuple[str, int, int, str]]:
    """Path, number, limit and unit of each size.

    The characters of a value are counted in its JSON, quotes included.
    """
    workload = suite.workload
    metrics = suite.job.metrics
    seed = suite.measurement.seed_argument
    names = _argument_names(suite) | ({seed} if seed else set())
    yield "workload.hyperparameters", len(names), HYPERPARAMETER_KEYS, "names"
    # A shared job has them in its document, and a run that is left alone in its request.
    values = [
        (f"workload.hyperparameters.{name}", value)
        for name, value in workload.hyperparameters.items()
    ]
    varied = [name for name in suite.matrix if name.startswith(HYPERPARAMETER_PREFIX)]
    values += [given for name in varied for given in given_values(suite, name)]
    yield from (
        (path, len(json.dumps(value)), HYPERPARAMETER_CHARACTERS, "characters")
        for path, value in values
    )
    yield "workload.channels", len(workload.channels), CHANNEL_COUNT, "channels"
    for path, image in (("workload.image", workload.image), *given_values(suite, "image")):
        yield path, len(image or ""), IMAGE_CHARACTERS, "characters"
    for name, value in workload.environment.items():
        yield f"workload.environment.{name}", len(value), ENVIRONMENT_CHARACTERS, "characters"
    yield "job.metrics", len(metrics), METRIC_COUNT, "metrics"
    for name, regex in metrics.items():
        yield f"job.metrics.{name}", len(regex), METRIC_CHARACTERS, "characters"


def given_values(suite: Suite, name: str) -> Iterator[tuple[str, Any]]:
    """Each value that the suite gives a setting, with its path; a baseline has values of the
    matrix.
    """
    points = {
        "training": suite.training,
        **{f"include[{index}]": point for index, point in enumerate(suite.include)},
    }
    yield from ((f"{path}.{name}", point[name]) for path, point in points.items() if name in point)
    yield from (
        (f"matrix.{name}[{index}]", value) for index, value in enumerate(suite.matrix.get(name, ()))
    )


def _argument_names(suite: Suite) -> set[str]:
    varied = (name for name in suite.matrix if name.startswith(HYPERPARAMETER_PREFIX))
    return {
        *suite.workload.hyperparameters,
        *(name.removeprefix(HYPERPARAMETER_PREFIX) for name in varied),
    }


def _check_metrics(suite: Suite) -> Iterator[Problem]:
    for name, regex in suite.job.metrics.items():
        try:
            re.compile(regex)
        except re.error as error:
            # SageMaker's dialect may have what Python's has not
            if not error.msg.startswith(("bad escape", "unknown extension")):
                message = f"got {shown(regex)}: {error}; expected a regular expression"
                yield Problem(path=f"job.metrics.{name}", message=message)


def _check_launcher_names(suite: Suite) -> Iterator[Problem]:
    if "" in _argument_names(suite):
        message = 'got the name "", expected one of at least one character'
        yield Problem(path="workload.hyperparameters", message=message)
    for name, value in suite.workload.hyperparameters.items():
        path = f"workload.hyperparameters.{name}"
        if name in (MPI_OPTIONS, SMDDP_OPTIONS) and not isinstance(value, str):
            yield Problem(
                path=path, message=f"got {shown(value)}, expected mpirun's options as one text"
            )
        is_for_mpi = name == MPI_OPTIONS and MODEL_PARALLEL_PARAMETERS in _argument_names(suite)
        if name.startswith(SDK_PREFIX) and name != SMDDP_OPTIONS and not is_for_mpi:
            message = (
                f"{SDK_PREFIX} is the prefix of the launcher's hyperparameters, expected a name "
                "without it"
            )
            yield Problem(path=path, message=message)


def _check_environment(suite: Suite) -> Iterator[Problem]:
    # The most variables of the lab: the step log's directory, the run's id, and what the job needs.
    own = 2 + _efa_variables(suite)
    own += suite.keeps_checkpoints + (suite.workload.task is Task.SCRIPT)
    own += suite.purchase is Purchase.SPOT  # how long its container stays after SIGTERM
    given = suite.workload.environment
    if len(given) + own > ENVIRONMENT_KEYS:
        message = (
            f"got {len(given)} names, expected at most {ENVIRONMENT_KEYS - own}: a job has at most "
            f"{ENVIRONMENT_KEYS}, and a job of this suite gets {own} from the lab"
        )
        yield Problem(path="workload.environment", message=message)
    for name in given:
        if not ENVIRONMENT_NAME.fullmatch(name) or name.startswith(OWN_ENVIRONMENT_PREFIX):
            message = (
                f"got {shown(name)}, expected letters, digits and _, not beginning with a digit or "
                f"{OWN_ENVIRONMENT_PREFIX}"
            )
            yield Problem(path=f"workload.environment.{name}", message=message)


def _efa_variables(suite: Suite) -> int:
    """Most EFA variables of a job that the suite does not set itself."""
    most = max((count for _, count in given_values(suite, "instance_count")), default=1)
    types = filter(None, (find_instance_type(name) for _, name in given_values(suite, "instance")))
    return max(
        (
            len(efa_environment(instance_type, most).keys() - suite.workload.environment)
            for instance_type in types
        ),
        default=0,
    )


def _check_channel_names(workload: Workload) -> Iterator[Problem]:
    taken = _channels_of_fields(workload)
    for name in workload.channels:
        if name in taken:
            message = f"got {shown(name)}, the channel of {taken[name]}; expected another name"
        elif not CHANNEL_NAME.fullmatch(name):
            message = f"got {shown(name)}, expected 1 to 64 letters, digits, . _ and -"
        else:
            continue
        yield Problem(path=f"workload.channels.{name}", message=message)


def _channels_of_fields(workload: Workload) -> dict[str, str]:
    """Channels made from other fields of the suite; a script has the channels that it names."""
    if workload.task is not Task.SCRIPT:
        return dict.fromkeys(RESERVED_CHANNELS, f"task {workload.task}")
    pretrained = [name for name in ("model", "tokenizer") if getattr(workload, name) is not None]
    of_code = "your code where a container has no network, as in SageMaker's SDK"
    channels = {CODE_CHANNEL: of_code} | ({TRAIN_CHANNEL: "dataset"} if workload.dataset else {})
    return channels | dict(zip((MODEL_CHANNEL, TOKENIZER_CHANNEL), pretrained, strict=False))
