"""The suite: workload, matrix, measurement, limits and goal, as the rest of the project sees them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from traindyno.core.documents.json_scalar import JsonScalar


class GoalKind(StrEnum):
    CHEAPEST = "cheapest"
    FASTEST = "fastest"
    CHEAPEST_WITHIN = "cheapest-within"
    FASTEST_WITHIN = "fastest-within"


class Task(StrEnum):
    CAUSAL_LM = "causal-lm"
    MASKED_LM = "masked-lm"
    SEQUENCE_CLASSIFICATION = "sequence-classification"
    SCRIPT = "script"


class Strategy(StrEnum):
    SINGLE = "single"
    DDP = "ddp"
    SMDDP = "smddp"
    FSDP = "fsdp"
    ZERO1 = "zero1"
    TENSOR = "tensor"
    PIPELINE = "pipeline"


class Compiler(StrEnum):
    NONE = "none"
    INDUCTOR = "inductor"
    XLA = "xla"
    NEURON = "neuron"


class Precision(StrEnum):
    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"


class ShardScope(StrEnum):
    """How far FSDP spreads parameters: over every rank, or within one instance and replicated across instances."""

    FULL = "full"
    HYBRID = "hybrid"


class PipelineSchedule(StrEnum):
    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"


class Padding(StrEnum):
    """How sequences of unequal length are brought to one shape within a batch."""

    MAX_LENGTH = "max-length"
    LONGEST = "longest"
    BUCKET = "bucket"


class Search(StrEnum):
    GRID = "grid"
    ELIMINATE = "eliminate"


class Purchase(StrEnum):
    ON_DEMAND = "on-demand"
    SPOT = "spot"


class LearningRateScaling(StrEnum):
    NONE = "none"
    GLOBAL_BATCH = "global_batch"


class OptimizerName(StrEnum):
    ADAMW = "adamw"
    SGD = "sgd"


class DatasetFormat(StrEnum):
    """What a dataset's files hold; ``auto`` goes by the file names, ``hub`` names a dataset on the Hugging Face Hub."""

    AUTO = "auto"
    HUB = "hub"
    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    SYNTHETIC = "synthetic"


class InputMode(StrEnum):
    """How a dataset reaches the container: SageMaker's two channel modes, or read from S3 by the loader itself."""

    FILE = "File"
    FAST_FILE = "FastFile"
    STREAM = "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    kind: GoalKind
    hours: Decimal | None = None
    usd: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Exactly one of ``path`` (Hub id, S3 URI or local folder) and ``config`` (random weights) is set.

    ``config`` is a transformers configuration with its ``model_type``, for example
    ``{"model_type": "gpt2", "n_layer": 6, "n_embd": 256}``.
    """

    path: str | None = None
    config: Mapping[str, Any] | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizer:
    """Exactly one of ``path`` and ``train_vocabulary_size`` is set; the latter trains one on the dataset itself."""

    path: str | None = None
    revision: str | None = None
    train_vocabulary_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """``path`` is a Hub id, an S3 URI, or a local file or folder (staged to S3 before the suite starts)."""

    path: str | None = None
    format: DatasetFormat = DatasetFormat.AUTO
    name: str | None = None
    revision: str | None = None
    split: str = "train"
    evaluation_split: str | None = None
    text_column: str = "text"
    label_column: str = "label"
    input_mode: InputMode = InputMode.FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is trained. With ``task: script``, ``source`` is a folder or S3 tarball, ``entry_point`` a file in it.

    ``channels`` are further inputs beside the dataset: channel name → S3 URI or local path, staged alike.
    """

    task: Task
    examples: int
    model: Model | None = None
    tokenizer: Tokenizer | None = None
    dataset: Dataset | None = None
    sequence_length: int | None = None
    label_count: int | None = None
    source: str | None = None
    entry_point: str | None = None
    hyperparameters: Mapping[str, JsonScalar] = field(default_factory=dict)
    image: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    channels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRate:
    base: float
    reference_batch_size: int | None = None
    scale_with: LearningRateScaling = LearningRateScaling.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that a cell may vary. A suite's ``training`` section fixes some of it, ``matrix`` varies the rest."""

    instance: str
    instance_count: int = 1
    strategy: Strategy = Strategy.DDP
    compiler: Compiler = Compiler.NONE
    precision: Precision = Precision.FP32
    batch_size_per_device: int = 1
    gradient_accumulation_steps: int = 1
    optimizer: OptimizerName = OptimizerName.ADAMW
    learning_rate: LearningRate = LearningRate(base=5e-5)
    weight_decay: float = 0.0
    gradient_clip_norm: float | None = None
    seed: int = 0
    loader_workers: int = 0
    prefetch_factor: int | None = None
    pin_memory: bool = False
    padding: Padding = Padding.MAX_LENGTH
    packing: bool = True
    activation_checkpointing: bool = False
    activation_offloading: bool = False
    shard_scope: ShardScope = ShardScope.FULL
    tensor_degree: int | None = None
    pipeline_degree: int | None = None
    pipeline_schedule: PipelineSchedule = PipelineSchedule.GPIPE
    micro_batches: int = 1
    dropout: float | None = None
    image: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWhen:
    relative_half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """``warmup_steps`` of None: found from the step times. ``max_steps`` bounds one run's optimizer steps."""

    trials: int = 3
    warmup_steps: int | None = None
    stop_when: StopWhen | None = None
    max_steps: int = 200
    evaluate: bool = False
    save_model: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    max_usd: Decimal
    max_hours: Decimal
    max_job_seconds: int
    max_attempts: int = 5
    max_pending_seconds: int = 7200


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The job that tokenises the dataset before the first run, on one instance without an accelerator.

    Left out, ``instance`` is ``local.cpu`` in a suite that runs on this machine and a small CPU type elsewhere, and
    ``max_seconds`` is ``limits.max_job_seconds``.
    """

    instance: str | None = None
    max_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Without a ``baseline``, the grid's first point is the cell that others are compared with.

    ``training_plans``: instance type → ARN of the training plan whose reserved capacity its jobs use.
    ``instance_preferences``: instance type → types that its jobs may run on instead, in this order, where it is short.
    ``claims`` are published figures to judge by what is measured; in a file, also the path of a claims file beside it.
    """

    name: str
    goal: Goal
    workload: Workload
    matrix: Mapping[str, tuple[Any, ...]]
    training: Mapping[str, Any] = field(default_factory=dict)
    baseline: Mapping[str, Any] = field(default_factory=dict)
    include: tuple[Mapping[str, Any], ...] = ()
    exclude: tuple[Mapping[str, Any], ...] = ()
    preparation: Preparation = Preparation()
    measurement: Measurement = Measurement()
    limits: Limits
    search: Search = Search.GRID
    purchase: Purchase = Purchase.ON_DEMAND
    warm_pool_seconds: int = 0
    training_plans: Mapping[str, str] = field(default_factory=dict)
    instance_preferences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    claims: Mapping[str, Any] | None = None
    notes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One configuration. ``cell_id`` is 8 hexadecimal digits of its content; ``label`` names what varies."""

    cell_id: str
    label: str
    settings: Settings
    hyperparameters: Mapping[str, JsonScalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """A dataset's tokens by their content key; ``s3_uri`` is the folder that holds them, None where they are yet to be
    made."""

    key: str
    s3_uri: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One trial of one cell, as the state machine carries it, with the tokens that it reads.

    The job that makes tokens travels the same way: its trial is 0 and its tokens lie nowhere yet.
    """

    run_id: str
    execution_id: str
    trial: int
    cell: Cell
    tokens: Tokens | None = None

    @property
    def is_preparation(self) -> bool:
        return self.tokens is not None and self.tokens.s3_uri is None
