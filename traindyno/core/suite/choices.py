"""The named values that fields of a suite take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class GoalKind(StrEnum):
    CHEAPEST = "cheapest"
    FASTEST = "fastest"
    CHEAPEST_WITHIN = "cheapest-within"
    FASTEST_WITHIN = "fastest-within"
    CHEAPEST_TO = "cheapest-to"
    FASTEST_TO = "fastest-to"


class Quality(StrEnum):
    """What an evaluation measures, named as its metrics in the step log."""

    ACCURACY = "accuracy"
    LOSS = "loss"
    PERPLEXITY = "perplexity"


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
    MESH = "mesh"


class Compiler(StrEnum):
    NONE = "none"
    INDUCTOR = "inductor"
    XLA = "xla"
    NEURON = "neuron"


class Precision(StrEnum):
    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"


class BaseWeights(StrEnum):
    """The type of a frozen model's weights: ``nf4`` are 4 bits, by bitsandbytes."""

    FP32 = "fp32"
    BF16 = "bf16"
    NF4 = "nf4"


class SaveDtype(StrEnum):
    """The type of a saved model's weights."""

    CHECKPOINT = "checkpoint"
    FP32 = "fp32"


class ShardScope(StrEnum):
    """How FSDP shards parameters: over every rank, or within one instance and replicated across
    instances.
    """

    FULL = "full"
    HYBRID = "hybrid"


class PipelineSchedule(StrEnum):
    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"


class Padding(StrEnum):
    """How sequences of unequal length get one shape within a batch."""

    MAX_LENGTH = "max-length"
    LONGEST = "longest"
    BUCKET = "bucket"


class Search(StrEnum):
    RACE = "race"
    GRID = "grid"

    @property
    def is_race(self) -> bool:
        return self is Search.RACE


class Jobs(StrEnum):
    SEPARATE = "separate"
    SHARED = "shared"


class Purchase(StrEnum):
    ON_DEMAND = "on-demand"
    SPOT = "spot"


class LearningRateScaling(StrEnum):
    NONE = "none"
    GLOBAL_BATCH = "global_batch"


class BatchChoice(StrEnum):
    LARGEST = "largest"
    BEST = "best"


class LearningRateSchedule(StrEnum):
    """Schedules, named as in transformers' ``SchedulerType``."""

    CONSTANT = "constant"
    LINEAR = "linear"
    COSINE = "cosine"


class OptimizerName(StrEnum):
    ADAMW = "adamw"
    SGD = "sgd"


class DatasetFormat(StrEnum):
    """The format of a dataset's files; ``auto``: by the file names, and conversations by the names
    of their columns; ``hub``: a dataset on the Hugging Face Hub; ``chat``: conversations in files
    of any other format, or on the Hub.
    """

    AUTO = "auto"
    HUB = "hub"
    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"
    CHAT = "chat"
    SYNTHETIC = "synthetic"


class LossOn(StrEnum):
    """Which tokens of a conversation count in the loss."""

    ANSWERS = "answers"
    ALL = "all"


class TooLong(StrEnum):
    """What becomes of a conversation that is longer than ``sequence_length``."""

    CUT = "cut"
    LEAVE_OUT = "leave-out"


class InputMode(StrEnum):
    """How a dataset reaches the container: SageMaker's two channel modes, or read from S3 by the
    loader itself.
    """

    FILE = "File"
    FAST_FILE = "FastFile"
    STREAM = "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyTraits:
    """What distinguishes a strategy from others.

    Attributes:
        one_process: A job is one process, which uses one device.
        takes_the_rest: Degrees, of which the first that is left out takes the processes that the
            others leave.
        stages_are_neighbours: A pipeline stays within an instance if it fits. Otherwise its stages
            are far apart, and the groups that communicate more are neighbours.
        runs_with_xla: It communicates only to average gradients, which XLA devices do themselves.
        is_composition: It divides processes by degrees on one mesh. A run of another such strategy,
            and of other degrees, can resume from its checkpoints.
        sagemaker_collectives: It needs SageMaker's data parallel library, which has its own images
            and launcher.
        stand_in: A strategy that needs the same memory and runs everywhere; None if this one does.
        trains_adapters: It leaves each layer whole, so that matrices can be added beside it.
        holds_whole_weights: Each process holds each of its weights whole, so that a weight may have
            4 bits.
        divides_replicas: Its replicas divide what they hold, so that each needs less memory the
            more there are.
    """

    one_process: bool = False
    takes_the_rest: tuple[str, ...] = ("replicate",)
    stages_are_neighbours: bool = False
    runs_with_xla: bool = False
    is_composition: bool = False
    sagemaker_collectives: bool = False
    stand_in: Strategy | None = None
    trains_adapters: bool = False
    holds_whole_weights: bool = True
    divides_replicas: bool = False


TRAITS: Mapping[Strategy, StrategyTraits] = {
    Strategy.SINGLE: StrategyTraits(one_process=True, runs_with_xla=True, trains_adapters=True),
    Strategy.DDP: StrategyTraits(runs_with_xla=True, trains_adapters=True),
    Strategy.SMDDP: StrategyTraits(sagemaker_collectives=True, stand_in=Strategy.DDP),
    Strategy.FSDP: StrategyTraits(
        is_composition=True,
        takes_the_rest=("shard",),
        trains_adapters=True,
        holds_whole_weights=False,
    ),
    Strategy.ZERO1: StrategyTraits(trains_adapters=True, divides_replicas=True),
    Strategy.TENSOR: StrategyTraits(is_composition=True, takes_the_rest=("tensor", "replicate")),
    Strategy.PIPELINE: StrategyTraits(
        is_composition=True, takes_the_rest=("pipeline", "replicate"), stages_are_neighbours=True
    ),
    Strategy.MESH: StrategyTraits(
        is_composition=True, takes_the_rest=("shard", "replicate", "pipeline", "tensor")
    ),
}


def strategies_with(trait: Callable[[StrategyTraits], bool]) -> tuple[Strategy, ...]:
    return tuple(strategy for strategy in Strategy if trait(TRAITS[strategy]))
