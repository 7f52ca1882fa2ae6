"""The suite: workload, matrix, measurement, limits and goal."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from math import ceil
from typing import Any

from traindyno.core.documents.field_description import Bound, describe, described
from traindyno.core.run.record import RunMeasurement
from traindyno.core.run.tokens import Tokens
from traindyno.core.run.workload import Workload
from traindyno.core.suite.cells import Cell, baseline_point, expand_cells, make_cell
from traindyno.core.suite.choices import Jobs, Purchase, Search, Task
from traindyno.core.suite.goal import USD, Goal, Pricing

# Limits of SageMaker.
JOB_SECONDS = Bound(least=10, most=28 * 24 * 3600)
PENDING_SECONDS = Bound(least=1800, most=28 * 24 * 3600)
VOLUME_GB = Bound(least=1, most=16_384)
# A day before Step Functions ends an execution, without a verdict.
MOST_HOURS = 27 * 24
# A run that ``stop_when`` ends has at least so many.
LEAST_STOP_STEPS = 400
# A long run may take so many times as long as by its trials' rate, and so long for its start.
ROOM = 1.4
START_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    minutes: float = field(
        metadata=describe(
            "how long each of the two runs trains", bound=Bound(above=0, most=20 * 24 * 60)
        )
    )
    argument: str | None = described(
        None,
        (
            "for script, which decides itself how long it runs: the argument that receives the "
            "number of steps"
        ),
    )

    def room_seconds(self, runs: int) -> int:
        """The least time limit for so many runs one after another, which may be slower than the
        trials were.
        """
        return runs * ceil(60 * ROOM * self.minutes + START_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(RunMeasurement):
    seed_argument: str | None = described(
        None,
        "for script: the argument that receives the seed of the trial, such as seed; trial k "
        "trains with training.seed + k - 1, in every cell",
        default="none; the script reads TRAINDYNO_SEED",
    )
    confirm: Confirm | None = described(
        None,
        "{minutes: 20} runs the two leading cells once more at the end, for so long each: their "
        "figures are then those of the long runs, which show what begins, or recurs three times, "
        "in that time",
        default="none; may stand at the top of the file",
    )
    jobs: Jobs = described(
        Jobs.SHARED,
        "shared: runs of a round that need the same instances and image run one after another in "
        "one job, which pays for its start once; separate: each run has its own job",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    max_usd: Decimal = field(
        metadata=describe(
            "the most that the execution may cost; no job starts that could exceed it",
            bound=USD,
            default="1 with --local, else required",
        )
    )
    max_hours: Decimal = field(
        metadata=describe(
            "the longest that the execution may take; no job starts that could exceed it",
            bound=Bound(above=0, most=MOST_HOURS),
            default="1 with --local, else required",
        )
    )
    max_job_seconds: int = field(
        metadata=describe(
            "the time limit of one job", bound=JOB_SECONDS, default="a quarter of max_hours"
        )
    )
    max_run_seconds: int | None = described(
        None,
        "the time limit of one run in a shared job; a job of one run has max_job_seconds only",
        bound=JOB_SECONDS,
        default="what is left of the job's",
    )
    max_attempts: int = described(
        5, "training jobs per run; links of a chain don't count", bound=Bound(least=1, most=100)
    )
    chain_jobs: bool = described(
        False,
        "a run that reaches its job's time limit continues in another job, from its newest "
        "checkpoint; for separate jobs with checkpoints",
    )
    max_pending_seconds: int = described(
        7200, "how long one job may wait for capacity", bound=PENDING_SECONDS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The job that tokenises the dataset before the first run, on one instance without an
    accelerator.
    """

    instance: str | None = described(
        None,
        "a type without accelerators; it needs a quota and is paid on demand",
        default="local.cpu where a cell runs on this machine, else ml.m7i.xlarge",
    )
    max_seconds: int | None = described(
        None, "its time limit", bound=JOB_SECONDS, default="limits.max_job_seconds"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What SageMaker adds to each training job of the suite."""

    metrics: Mapping[str, str] = described(
        {}, "metric name → regular expression; SageMaker reads it from the log for CloudWatch"
    )
    volume_size_gb: int | None = described(
        None,
        "the storage volume of each instance; types with instance storage ignore it",
        bound=VOLUME_GB,
        unit="GB",
        default="the lab's",
    )
    debugger_hook: bool = described(
        False, "SageMaker Debugger's hook, which the SageMaker SDK turns on by default"
    )


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Without a ``baseline``, the first cell of the grid is the one that others are compared with.

    Without a ``matrix``, ``training`` is the only cell.
    """

    name: str
    goal: Goal
    workload: Workload
    matrix: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    baseline: Mapping[str, Any] = field(default_factory=dict)
    include: tuple[Mapping[str, Any], ...] = ()
    exclude: tuple[Mapping[str, Any], ...] = ()
    preparation: Preparation = Preparation()
    measurement: Measurement = Measurement()
    limits: Limits
    tolerance: float = described(
        0.02,
        "a cell that is worse than the best by no more than this share is as good for the goal",
        bound=Bound(least=0, most=0.5),
    )
    search: Search = described(
        Search.RACE,
        "race runs every cell once, ends runs that fall behind in their job, and measures the "
        "leading cells again; grid measures every cell",
        default="race; grid where each run has its own job, and of one cell",
    )
    purchase: Purchase = described(
        Purchase.ON_DEMAND,
        "spot costs less; a run that is interrupted resumes from its newest checkpoint",
    )
    job: JobOptions = described(JobOptions(), "what SageMaker adds to each job", default="none")
    pricing: Pricing = described(
        Pricing(), "{spot}: its price for the same measurements", default="none"
    )
    #: Field that a feature adds → its document, as it was written.
    features: Mapping[str, Any] = field(default_factory=dict)
    notes: str | None = described(None, "free text for readers of the file")

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return expand_cells(self)

    @cached_property
    def baseline_cell(self) -> Cell:
        """The cell that the others are compared with."""
        wanted = make_cell(self, baseline_point(self)).cell_id
        return next(cell for cell in self.cells if cell.cell_id == wanted)

    @property
    def has_one_cell(self) -> bool:
        return not self.include and all(len(values) < 2 for values in self.matrix.values())

    @property
    def keeps_checkpoints(self) -> bool:
        """A built-in task on demand without a checkpoint period writes none.

        Nothing would read it, and a stopped job would be billed for it. A user's script decides
        itself.
        """
        is_asked = self.job_measurement.checkpoint_every_steps is not None
        return is_asked or self.purchase is Purchase.SPOT or self.workload.task is Task.SCRIPT

    @property
    def job_measurement(self) -> Measurement:
        """What a job of a built-in task does: what the full run's schedule names, it does at least
        once in its midst.

        So its cost is measured. A run that ``stop_when`` may end does it often enough.
        """
        given = self.measurement
        full_run = self.workload.full_run
        if full_run is None:
            return given
        steps = (
            given.max_steps if given.stop_when is None else min(given.max_steps, LEAST_STOP_STEPS)
        )
        midst = max(1, steps // 2)
        saves = full_run.checkpoint_every_minutes
        evaluates = full_run.evaluate_every_steps
        return replace(
            given,
            checkpoint_every_steps=given.checkpoint_every_steps
            or (midst if saves is not None else None),
            evaluate_every_steps=given.evaluate_every_steps
            or (midst if evaluates is not None else None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One trial of one cell, as the state machine carries it."""

    run_id: str
    execution_id: str
    trial: int
    cell: Cell
    #: The tokens that it reads.
    tokens: Tokens | None = None
    #: Its place in the random order of its round, from 1.
    place: int | None = None
    #: Runs of different cells in one block are measured about the same time.
    block: str | None = None
    #: The lab's copy of the workload's model; None for a model that is not on the Hub.
    model_s3_uri: str | None = None
    #: The seed of this trial (``with_seeds``).
    seed: int | None = None
    #: The job that carries it with other runs; None if it has a job of its own.
    job_id: str | None = None
    #: The batch that an earlier trial found, in a cell that searches it; None before.
    found_batch: int | None = None
    #: The batch that a search probes first, where the memory is estimated.
    first_batch: int | None = None
    #: How many steps a long run trains that confirms a leading cell, in place of the suite's.
    confirming_steps: int | None = None

    @property
    def name(self) -> str:
        """Among the runs of its cell."""
        return "long run" if self.confirming_steps else f"trial {self.trial}"

    @property
    def searches_batch(self) -> bool:
        return self.cell.settings.batch_search is not None and self.found_batch is None
