"""The named values that fields of a suite take."""

from enum import StrEnum


class GoalKind(StrEnum):
    CHEAPEST = "cheapest"
    FASTEST = "fastest"
    CHEAPEST_WITHIN = "cheapest-within"
    FASTEST_WITHIN = "fastest-within"
    CHEAPEST_TO = "cheapest-to"
    FASTEST_TO = "fastest-to"


class Quality(StrEnum):
    """What an evaluation measures; the names are those of the metrics in the step log."""

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


class ShardScope(StrEnum):
    """How FSDP shards parameters: over every rank, or within one instance and replicated across instances."""

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


class OptimizerName(StrEnum):
    ADAMW = "adamw"
    SGD = "sgd"


class DatasetFormat(StrEnum):
    """The format of a dataset's files; ``auto``: by the file names; ``hub``: a dataset on the Hugging Face Hub."""

    AUTO = "auto"
    HUB = "hub"
    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"
    SYNTHETIC = "synthetic"


class InputMode(StrEnum):
    """How a dataset reaches the container: SageMaker's two channel modes, or read from S3 by the loader itself."""

    FILE = "File"
    FAST_FILE = "FastFile"
    STREAM = "stream"
