"""Which runs share a job and in which order they run there, and why a run has a job of its own."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from traindyno.core.documents.plain import plain_values
from traindyno.core.instances.devices import AcceleratorKind
from traindyno.core.instances.instance_types import (
    find_instance_type,
)
from traindyno.core.jobs.job import Job
from traindyno.core.planning.history import Histories, expect_job
from traindyno.core.s3_keys import is_packed_by_client, is_s3_uri
from traindyno.core.suite.arguments import READ_BY_SHELLS, arguments_of, command_arguments
from traindyno.core.suite.aws_images import FIRST_TORCHRUN_VERSION, pytorch_version
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.checks.job_limits_check import (
    MODEL_PARALLEL_PARAMETERS,
    SDK_PREFIX,
    SHARED_CHANNELS,
)
from traindyno.core.suite.choices import TRAITS, Compiler, Jobs, Task
from traindyno.core.suite.preparation import is_packed, needs_preparation
from traindyno.core.suite.runs import round_of, run_id_of, values_in_cells, with_seeds
from traindyno.core.suite.suite import Run, Suite
from traindyno.figures.in_job.run_scatter import run_scatter

# Their documents fit into one row, and into one state, which holds 256 KiB with the job's end.
# Texts of a cell have any length.
MOST_BYTES = 200_000
RUN_BYTES = 800  # of a run's document, besides its cell
# A job is filled to this share of its time limit, by what earlier runs took.
FILLED_SHARE = 0.5
KEY_DIGITS = 7
# In place of a round's number, in the block of a run that the first round's job began itself.
AGAIN = "1+"

NO_OTHER = "no other cell needs the same instances and image"
TOO_LONG = "by earlier runs it takes half of the time limit alone"

GroupKey = tuple[str | int | None, ...]


def share_jobs(
    runs: Sequence[Run], suite: Suite, histories: Histories | None = None
) -> tuple[Job, ...]:
    """The jobs of a round's runs, in the order of their first runs.

    ``histories``: of earlier runs, by cell id.
    """
    jobs: list[Job] = []
    groups: dict[tuple[GroupKey, str], list[Run]] = {}
    for run in runs:
        if why_alone(run.cell, suite) is None:
            # In a race the runs of a round share a job, forward and backward.
            block = (
                round_of(run) if suite.search.is_race and run.block else run.block or str(run.trial)
            )
            groups.setdefault((group_key(run.cell, suite), block), []).append(run)
        else:
            jobs.append(separate_job(run))
    for (key, block), of_group in groups.items():
        jobs += _jobs_of_group(key, block, _in_order(of_group, suite), suite, histories or {})
    return tuple(sorted(jobs, key=lambda job: (job.trial, job.place)))


def separate_job(run: Run) -> Job:
    return Job(execution_id=run.execution_id, job_id=run.run_id, runs=(run,))


def why_alone(cell: Cell, suite: Suite) -> str | None:
    """Why a cell's run has a job of its own; None if the cell's runs can share a job."""
    if suite.measurement.jobs is Jobs.SEPARATE:
        return "measurement.jobs is separate"
    if suite.measurement.save_model:
        return "it saves its model, which is a file of the job"
    source = suite.workload.source
    if suite.workload.task is Task.SCRIPT and is_s3_uri(source) and not is_packed_by_client(source):
        return (
            "its code is a tarball that traindyno run has not packed: it lacks the program that "
            "carries several runs"
        )
    return _launcher_of_sagemaker(cell, suite) or _too_many_channels(suite)


def _launcher_of_sagemaker(cell: Cell, suite: Suite) -> str | None:
    settings = cell.settings
    instance_type = find_instance_type(cell.settings.instance)
    assert instance_type is not None, "a parsed suite names known instance types only"
    is_gpu = instance_type.accelerator_kind is AcceleratorKind.GPU and not instance_type.is_local
    if TRAITS[settings.strategy].sagemaker_collectives:
        return f"strategy {settings.strategy} is started by SageMaker's own launcher"
    if MODEL_PARALLEL_PARAMETERS in arguments_of(cell, suite.workload):
        return f"{MODEL_PARALLEL_PARAMETERS} is started by SageMaker's own launcher"
    if settings.compiler is Compiler.XLA and is_gpu:
        return "XLA on GPUs is started by SageMaker's own launcher"
    image = settings.image or suite.workload.image
    version = pytorch_version(image) if is_gpu and image is not None else None
    is_older = version is not None and version < FIRST_TORCHRUN_VERSION
    if is_older and not TRAITS[settings.strategy].one_process:
        return f"image {image} has a PyTorch that SageMaker starts with mpirun"
    return None


def group_key(cell: Cell, suite: Suite) -> GroupKey:
    """Key of everything that a job fixes. Runs of cells with one key can share a job."""
    settings = cell.settings
    is_xla = settings.compiler is Compiler.XLA  # it has an image of its own in the local cloud
    apart = _tokens_apart(cell, suite)
    fixed = (
        settings.instance,
        settings.instance_count,
        settings.image or suite.workload.image,
        is_xla,
    )
    return fixed if apart is None else (*fixed, apart)


def _too_many_channels(suite: Suite) -> str | None:
    """Why a shared job has no room for the channels of one run, or None."""
    count = _channel_count(suite)
    if count <= SHARED_CHANNELS:
        return None
    return (
        f"it reads {count} input channels, and a job that runs share has room for {SHARED_CHANNELS}"
    )


def _tokens_apart(cell: Cell, suite: Suite) -> bool | None:
    """Grouping key for job sharing.

    None unless the channel limit forces cells with different tokens apart.
    """
    if not needs_preparation(suite.workload) or _channel_count(suite) < SHARED_CHANNELS:
        return None
    return is_packed(cell.settings, suite.workload)


def _channel_count(suite: Suite) -> int:
    """The most channels of one run: its model and tokenizer may be in S3, or copied there."""
    workload = suite.workload
    paths = [part.path for part in (workload.model, workload.dataset) if part is not None]
    if workload.tokenizer is not None and not needs_preparation(workload):
        paths.append(workload.tokenizer.path)
    return len(workload.channels) + sum(path is not None for path in paths)


def _in_order(runs: Sequence[Run], suite: Suite) -> list[Run]:
    """Drawn at random for a pair of trials: the second has the order of the first reversed, so that
    a drift over a job and a cold first run affect all cells alike. So has a second pass through the
    same cells in one job.

    A race's first job begins with the baseline that the suite names: a first run is measured in
    full, and from the second one on, a slow cell ends early. Repeats have the order of the trials
    that they replace.
    """
    trial = min((run.trial - 1) % suite.measurement.trials + 1 for run in runs)
    pair = (trial + 1) // 2
    first_id = (
        suite.baseline_cell.cell_id
        if suite.search.is_race and suite.baseline and pair == 1
        else None
    )

    def place(run: Run) -> tuple[bool, bytes]:
        return run.cell.cell_id != first_id, _lot(f"{run.execution_id} {pair} {run.cell.cell_id}")

    passes: dict[str | None, list[Run]] = {}
    for run in sorted(runs, key=place):
        passes.setdefault(run.block, []).append(run)
    in_turn = [passes[block] for block in sorted(passes, key=lambda block: block or "")]
    return [
        run
        for number, drawn in enumerate(in_turn, start=trial)
        for run in (drawn if number % 2 else reversed(drawn))
    ]


def _jobs_of_group(
    key: GroupKey, block: str, runs: Sequence[Run], suite: Suite, histories: Histories
) -> Iterator[Job]:
    for part, of_job in enumerate(_parts(runs, suite, histories), start=1):
        if len(of_job) == 1 and not _needs_parent(of_job[0], suite):
            yield separate_job(of_job[0])
            continue
        # As long as the id of a run, which lab and suite names leave room for in a job's name
        digits = _lot(f"{key} {block} {part}").hex()[:KEY_DIGITS]
        job_id = f"j{digits}-t{min(run.trial for run in of_job)}"
        carried = tuple(replace(run, job_id=job_id) for run in of_job)
        yield Job(execution_id=of_job[0].execution_id, job_id=job_id, runs=carried)


def _needs_parent(run: Run, suite: Suite) -> bool:
    """Whether the parent of a shared job has to start the run, even alone: it probes batches, and
    starts a script without a shell.
    """
    return run.searches_batch or any(words_for_shells(run.cell, suite))


def words_for_shells(cell: Cell, suite: Suite) -> Iterator[tuple[str, str, str]]:
    """Arguments that a shell would change, each with its name and what the shell would read in it.

    The launcher's own arguments are left out.
    """
    for name, value in arguments_of(cell, suite.workload).items():
        if name == MODEL_PARALLEL_PARAMETERS or name.startswith(SDK_PREFIX):
            continue
        for word in command_arguments({name: value}):
            match = READ_BY_SHELLS.search(word)
            if match:
                yield name, word, f"{match[0]!r} in it" if match[0] else "an empty value"


def _parts(runs: Sequence[Run], suite: Suite, histories: Histories) -> list[list[Run]]:
    """Jobs of equal numbers of runs, few enough for the time limit and for the document."""
    # The plan does not know the runs' tokens yet, and has to find the same sizes.
    sizes = [RUN_BYTES + len(json.dumps(plain_values(run.cell))) for run in runs]
    known = [histories[run.cell.cell_id] for run in runs if run.cell.cell_id in histories]
    expected = expect_job(known).seconds / len(known) * len(runs) if known else 0.0
    by_time = -(-expected // (FILLED_SHARE * suite.limits.max_job_seconds))
    count = min(len(runs), max(1, int(by_time), -(-sum(sizes) // MOST_BYTES)))
    while count < len(runs) and any(
        sum(sizes[part]) > MOST_BYTES for part in _slices(len(runs), count)
    ):
        count += 1
    return [list(runs[part]) for part in _slices(len(runs), count)]


def runs_again(job: Job, suite: Suite) -> tuple[Run, ...]:
    """The runs that a race's first job may have after its own, backward and forward: its parent
    process begins those of the cells that may be the best. The others are no runs. Only the group
    that is likely to have the winner runs cells again: that of the most instances, or of the fewest
    where the cost decides.
    """
    counts = values_in_cells(suite, "instance_count")
    likely = max(counts) if suite.goal.is_time else min(counts)
    is_first = len(job.runs) > 1 and all(
        run.block == "1.1" and not run.searches_batch for run in job.runs
    )
    if not (
        suite.search.is_race
        and suite.goal.target is None
        and is_first
        and job.instance_count == likely
    ):
        return ()
    passes = run_scatter(job.settings.instance).passes
    again = [
        replace(
            run,
            run_id=run_id_of(run.cell.cell_id, trial),
            trial=trial,
            block=f"{AGAIN}.{trial - 1}",
        )
        for trial in range(2, 2 + min(passes, suite.measurement.trials - 1))
        for run in (reversed(job.runs) if trial % 2 == 0 else job.runs)
    ]
    return with_seeds(suite, again)


def _slices(runs: int, count: int) -> list[slice]:
    bounds = [runs * part // count for part in range(count + 1)]
    return [slice(begin, end) for begin, end in pairwise(bounds)]


def _lot(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
