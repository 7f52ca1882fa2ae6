"""`traindyno import`: the suite of a training job that ran, and axes to try."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from botocore.exceptions import ClientError

from traindyno.api.plan_inputs import account_region
from traindyno.api.suite_text import write_yaml
from traindyno.aws import clients
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.cli.client import Client
from traindyno.cli.lab_choice import AccountChoice, with_options_of
from traindyno.cli.option_values import finite, job_name, refuse_unwritable, write_new
from traindyno.cli.output import print_text, tell
from traindyno.core.errors import TraindynoError
from traindyno.core.s3_keys import S3_SCHEME, is_s3_uri
from traindyno.sagemaker.launcher import CODE_CHANNEL
from traindyno.slices.imported.job import DRIVERS_CHANNEL, Drivers, JobNotImportable, channel_uri
from traindyno.slices.imported.job import job_name as name_in_request
from traindyno.slices.imported.suite_of_job import (
    Decisions,
    ImportedSuite,
    check_description,
    document_json,
)
from traindyno.slices.imported.suite_of_job import import_job as suite_of_job

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


from traindyno.core.instances.instance_types import find_instance_type, instance_types
from traindyno.core.run.settings import HYPERPARAMETER_PREFIX
from traindyno.core.suite.choices import Strategy, Task

# The SDK's files have some hundred bytes.
MOST_BYTES = 65_536
DRIVERS_FILES = ("sourcecode.json", "distributed.json")
JobArgument = Annotated[
    str, typer.Argument(help="The training job's name in SageMaker.", callback=job_name)
]
OUTPUT = "--output"
EXAMPLE = "my-training-2026-11-20 --examples 1000000 --output suite.yaml"
OutputOption = Annotated[
    Path | None, typer.Option(OUTPUT, help="Write the suite to this new file.")
]
ExamplesOption = Annotated[
    int | None, typer.Option(help="The examples of the whole training, which no job says.", min=1)
]
UsdOption = Annotated[
    float | None,
    typer.Option("--max-usd", help="The most that the suite may cost.", min=0.01, callback=finite),
]
HoursOption = Annotated[
    float | None,
    typer.Option(
        "--max-hours", help="The longest that the suite may take.", min=0.01, callback=finite
    ),
]
MOST_TYPES = 5
BATCH_SIZE = "batch_size"
OWN_BATCH_SIZE = "batch_size_per_device"


class JobUnknown(TraindynoError):
    """The account has no such training job in the region."""


def read_job(name: str) -> dict[str, Any]:
    """Describe a training job. Raises JobUnknown."""
    job = TrainingJobs(clients.sagemaker()).describe(name)
    if job is None:
        raise JobUnknown(
            f"{name}: no such training job in {account_region()}, expected the name of one; list "
            "them with: aws sagemaker list-training-jobs"
        )
    return job


def import_described(
    job: Mapping[str, Any], decisions: Decisions, *, s3: "S3Client"
) -> ImportedSuite:
    """Make a suite of a described job. Raises JobNotImportable.

    The code of a job of the SDK 3 is many objects, which a person copies to a folder.
    """
    check_description(job)
    drivers_uri = channel_uri(job, DRIVERS_CHANNEL)
    if drivers_uri is None:
        return suite_of_job(job, decisions)
    # A path of another machine, in a job that anyone may have made, names nothing here.
    folder = f"code-of-{re.sub('[^A-Za-z0-9-]+', '-', name_in_request(job))}"
    source_code, distributed = (
        _read_json(f"{drivers_uri.rstrip('/')}/{name}", s3) for name in DRIVERS_FILES
    )
    drivers = Drivers(source_code=source_code, distributed=distributed, copied_to=folder)
    imported = suite_of_job(job, decisions, drivers=drivers)
    code = channel_uri(job, CODE_CHANNEL) or "unknown"
    command = f"aws s3 cp --recursive {shlex.quote(code)} {shlex.quote(folder)}"
    return replace(
        imported,
        left_out={**imported.left_out, "workload.source": f"its code is in S3; copy it: {command}"},
    )


def _read_json(uri: str, s3: "S3Client") -> dict[str, Any]:
    if not is_s3_uri(uri):
        raise JobNotImportable(f"got {uri}, expected the SDK's drivers in S3")
    bucket, _, key = uri.removeprefix(S3_SCHEME).partition("/")
    try:
        content = s3.get_object(Bucket=bucket, Key=key)["Body"].read(MOST_BYTES)
    except ClientError as error:
        raise JobNotImportable(
            f"{uri} can't be read, which says which script the job runs: {error}"
        ) from error
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise JobNotImportable(f"{uri} is no JSON document of the SDK: {error}") from error
    if not isinstance(document, dict):
        raise JobNotImportable(f"{uri}: got {type(document).__name__}, expected a mapping")
    return document


@with_options_of(AccountChoice)
def import_job(
    choice: AccountChoice,
    job: JobArgument,
    output: OutputOption = None,
    examples: ExamplesOption = None,
    max_usd: UsdOption = None,
    max_hours: HoursOption = None,
) -> None:
    """Make a suite of a training job that ran, and suggest axes.

    The suite goes to standard output, or to the file of --output; the rest to standard error.
    Nothing is started.
    """
    if output is not None:
        refuse_unwritable(output, OUTPUT)
    choice.choose()
    described = read_job(job)
    decisions = Decisions(
        examples=examples, max_usd=_decimal(max_usd), max_hours=_decimal(max_hours)
    )
    imported = import_described(described, decisions, s3=clients.s3())
    axes = suggest_axes(imported.document)
    text = suite_text(imported, axes)
    if output is None:
        print_text(text)
    else:
        write_new(output, text, OUTPUT)
    for line in notes(imported):
        tell(line)


def suite_text(imported: ImportedSuite, axes: Mapping[str, Sequence[Any]]) -> str:
    """The suite file, with what is missing and the suggested axes as comments."""
    text = write_yaml(document_json(imported.document), width=120)
    lines = [f"# Write {path}: no job says it.\n" for path in imported.missing]
    if axes:
        block = write_yaml({"matrix": document_json(axes)}, default_flow_style=None)
        lines.append(
            "# Axes to try; what moves to matrix leaves training and workload.hyperparameters:\n"
        )
        lines += [f"# {line}\n" for line in block.splitlines()]
    return text + "".join(lines)


def notes(imported: ImportedSuite) -> Iterator[str]:
    """Settings that the suite can't carry over, and all other differences, by their reason."""
    for path in imported.missing:
        yield f"missing: {path}; no job says it, write it into the suite"
    for path, reason in imported.left_out.items():
        yield f"not carried over: {path}: {reason}"
    by_reason: dict[str, list[str]] = {}
    for difference in imported.differences:
        by_reason.setdefault(difference.reason, []).append(difference.path)
    for reason, paths in by_reason.items():
        yield f"differs from the job: {', '.join(paths)} ({reason})"


def _decimal(value: float | None) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def suggest_axes(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Suggested values of each setting or ``hyperparameters.<name>``, the job's own value first.

    No rule is checked.
    """
    training = document["training"]
    workload = document["workload"]
    axes: dict[str, list[Any]] = {}
    types = neighbours(training["instance"])
    if types:
        axes["instance"] = [training["instance"], *types]
    if workload["task"] == Task.SCRIPT:
        for name, value in workload.get("hyperparameters", {}).items():
            is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
            if is_count and BATCH_SIZE in name.lower().replace("-", "_"):
                axes[f"{HYPERPARAMETER_PREFIX}{name}"] = _around(value)
        return axes
    axes[OWN_BATCH_SIZE] = _around(training.get(OWN_BATCH_SIZE, 1))
    strategy = training.get("strategy", Strategy.DDP.value)
    instance = find_instance_type(training["instance"])
    if (
        instance is not None
        and instance.devices_per_instance * training.get("instance_count", 1) > 1
    ):
        axes["strategy"] = list(dict.fromkeys((strategy, Strategy.DDP.value, Strategy.FSDP.value)))
    return axes


def neighbours(name: str) -> list[str]:
    """Instance types to try beside this one: the next smaller and the next larger type of its
    family, then types of like families with the same size.
    """
    own = find_instance_type(name)
    if own is None or own.is_local:
        return []
    types = [
        instance_type for instance_type in instance_types().values() if not instance_type.is_local
    ]
    family = sorted(
        (instance_type for instance_type in types if instance_type.family == own.family),
        key=lambda instance_type: (
            instance_type.devices_per_instance,
            instance_type.vcpus or 0,
            instance_type.memory_gib or 0.0,
        ),
    )
    place = [member.name for member in family].index(name)
    near = [
        member.name
        for member in (*family[max(place - 1, 0) : place], *family[place + 1 : place + 2])
    ]
    others = [
        instance_type
        for instance_type in types
        if instance_type.family != own.family
        and instance_type.accelerator_kind is own.accelerator_kind
    ]
    size = own.name.rpartition(".")[2]
    kin = [
        other
        for other in others
        if other.family[0] == own.family[0] and other.name.rpartition(".")[2] == size
    ]
    alike = sorted(
        relative.name
        for relative in kin
        if relative.devices_per_instance == own.devices_per_instance
    )
    return [*near, *alike][:MOST_TYPES]


def _around(value: int) -> list[int]:
    return list(dict.fromkeys((value, max(value // 2, 1), value * 2)))


def client() -> Client:
    return Client(commands={"import": (import_job, EXAMPLE)}, refusals=(JobNotImportable,))
