"""A cell's settings.

Each field has its description: meaning, bounds, strategies that use it, and its effect.
"""

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from typing import Any, get_type_hints

from traindyno.core.documents.field_description import (
    KEY,
    NOT_NEGATIVE,
    POSITIVE,
    Bound,
    FieldDescription,
    Value,
    describe,
    described,
)
from traindyno.core.suite.choices import (
    BaseWeights,
    BatchChoice,
    Compiler,
    LearningRateScaling,
    LearningRateSchedule,
    OptimizerName,
    Padding,
    PipelineSchedule,
    Precision,
    ShardScope,
    Strategy,
)

HYPERPARAMETER_PREFIX = "hyperparameters."
ALL_LINEAR = "all-linear"
# A job tries whether its model keeps documents apart on sequences of this length.
DOCUMENT_CHECK_TOKENS = 16
# Bounds that only keep numbers within what a job, a database row and 64 bits can hold.
MOST_INSTANCES = 10_000
SAMPLES = Bound(least=1, most=1_000_000)
MOST_SEED = 2**32 - 1
MOST_RANK = 65_536


class Effect(StrEnum):
    """What a setting changes in addition to speed and memory."""

    LEARNING = "learning"  # the losses
    BATCH = "batch"  # the global batch size, or how it is divided
    PLACEMENT = "placement"  # how many replicas of the model share a global batch
    DEGREE = "degree"  # how the processes are divided: a placement too


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingDescription(FieldDescription):
    """Description of a setting.

    ``used_by`` has the strategies whose option it is; empty if every strategy uses it.
    ``is_seen_by_scripts`` says that it affects a user's own script, through its launcher, and
    ``changes_memory`` that it changes the size of a tensor. With ``is_fixed_by_checkpoints``, a run
    with another value can't resume from a checkpoint; it is always True with effect ``learning``.
    """

    used_by: tuple[Strategy, ...] = ()
    effect: Effect | None = None
    is_seen_by_scripts: bool = False
    changes_memory: bool = True
    is_fixed_by_checkpoints: bool = False


def setting(
    value: Value,
    meaning: str,
    *,
    effect: Effect | None = None,
    is_fixed_by_checkpoints: bool = False,
    **description: Any,
) -> Value:
    """A field of Settings with this default."""
    description["is_fixed_by_checkpoints"] = is_fixed_by_checkpoints or effect is Effect.LEARNING
    return described(value, meaning, kind=SettingDescription, effect=effect, **description)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRate:
    base: float = field(
        metadata=describe(
            "the learning rate, or the learning rate of the reference batch size", bound=POSITIVE
        )
    )
    reference_batch_size: int | None = described(
        None,
        "the global batch size that base is meant for",
        bound=Bound(least=1, most=10**12),
        unit="samples",
    )
    scale_with: LearningRateScaling = described(
        LearningRateScaling.NONE,
        "global_batch scales the rate in proportion to the global batch size",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorLayers:
    """Paths of linear layers within the base model; ``*`` stands for one name. The styles are named
    as in transformers.
    """

    colwise: tuple[str, ...] = described((), "layers whose outputs are divided")
    rowwise: tuple[str, ...] = described((), "layers whose inputs are divided already")
    colwise_gather_output: tuple[str, ...] = described(
        (), "layers whose outputs are divided, and gathered behind the layer"
    )
    rowwise_split_input: tuple[str, ...] = described(
        (), "layers whose whole inputs are divided before the layer"
    )

    def named(self) -> tuple[tuple[str, str], ...]:
        """Each path with its style."""
        return tuple(
            (path, style.name) for style in fields(self) for path in getattr(self, style.name)
        )

    def styles(self) -> dict[str, str]:
        """Style of each path."""
        return dict(self.named())

    def __str__(self) -> str:
        return ", ".join(self.styles()) or "no layers"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSearch:
    search: BatchChoice = field(
        metadata=describe(
            "largest: the largest batch that fits; best: the probed batch with the highest rate"
        )
    )
    begin: int = described(
        1,
        "the first batch that is probed; for 1, what `plan` estimated to fit, if it did",
        bound=SAMPLES,
        unit="samples",
    )
    argument: str | None = described(
        None, "of a script: the hyperparameter that is its batch per device"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """LoRA: the model is frozen, and two small matrices beside each target are trained."""

    rank: int = field(
        metadata=describe(
            "the rows of the first matrix and the columns of the second",
            bound=Bound(least=1, most=MOST_RANK),
        )
    )
    alpha: float | None = described(
        None,
        "what the product of the matrices is multiplied by, divided by the rank",
        bound=POSITIVE,
        default="twice the rank",
    )
    dropout: float = described(
        0.0, "the share of a target's inputs that the matrices miss", bound=Bound(least=0, most=0.9)
    )
    targets: tuple[str, ...] = described(
        (ALL_LINEAR,),
        "all-linear: every linear layer but the head and a mixture's routers; or the ends of the "
        "paths of layers, and of experts' weights",
        default="`all-linear`",
    )
    learning_rate: float | None = described(
        None,
        "in place of the base of training.learning_rate",
        bound=POSITIVE,
        default="training.learning_rate",
    )
    merged: bool = described(
        True,
        "with measurement.save_model: save the model with the adapter merged into it, which deploy "
        "serves, and the adapter in its folder adapter; false saves the adapter alone",
    )

    @property
    def scale(self) -> float:
        return self.alpha or 2.0 * self.rank

    def __str__(self) -> str:
        plain = Adapter(rank=self.rank)
        more = [
            f"{option.name.replace('_', ' ')} {_plain_text(getattr(self, option.name))}"
            for option in fields(self)
            if option.name != "merged" and getattr(self, option.name) != getattr(plain, option.name)
        ]
        return ", ".join([f"LoRA of rank {self.rank}", *more])


def _plain_text(value: float | tuple[str, ...]) -> str:
    return " ".join(value) if isinstance(value, tuple) else f"{value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that a cell may vary.

    A suite's ``training`` section fixes some of it, ``matrix`` varies the rest.
    """

    instance: str = field(
        metadata={
            KEY: SettingDescription(
                meaning="a SageMaker training instance type, or local.cpu or local.gpu for this "
                "machine",
                effect=Effect.PLACEMENT,
                is_seen_by_scripts=True,
            )
        }
    )
    instance_count: int = setting(
        1,
        "instances of one job",
        bound=Bound(least=1, most=MOST_INSTANCES),
        effect=Effect.PLACEMENT,
        is_seen_by_scripts=True,
    )
    strategy: Strategy = setting(
        Strategy.DDP,
        "how one model is trained by several processes",
        effect=Effect.PLACEMENT,
        is_seen_by_scripts=True,
        is_fixed_by_checkpoints=True,
    )
    compiler: Compiler = setting(
        Compiler.NONE, "what compiles the model's graph", is_seen_by_scripts=True
    )
    precision: Precision = setting(
        Precision.FP32,
        "the number format of the forward pass; fp16 scales the loss",
        is_fixed_by_checkpoints=True,
    )
    batch_size_per_device: int | BatchSearch = setting(
        1,
        (
            "samples of one forward pass on one replica of the model: a number, or {search: "
            "largest} or {search: best}"
        ),
        bound=SAMPLES,
        effect=Effect.BATCH,
    )
    gradient_accumulation_steps: int = setting(
        1, "forward and backward passes of one optimizer step", bound=SAMPLES, effect=Effect.BATCH
    )
    global_batch_size: int | None = setting(
        None,
        "samples of one optimizer step over all replicas of the model; "
        "gradient_accumulation_steps follows from it, and {search: largest} finds the largest "
        "batch per device that divides it",
        bound=Bound(least=1, most=10**9),
        unit="samples",
        default="batch per device × replicas × accumulation steps",
        effect=Effect.BATCH,
    )
    optimizer: OptimizerName = setting(OptimizerName.ADAMW, "the optimizer", effect=Effect.LEARNING)
    learning_rate: LearningRate = setting(
        LearningRate(base=5e-5),
        "a number, or {base, reference_batch_size, scale_with: global_batch}",
        default="0.00005",
        changes_memory=False,
    )
    lr_schedule: LearningRateSchedule = setting(
        LearningRateSchedule.CONSTANT,
        (
            "how the learning rate changes over the steps of the whole training: linear and "
            "cosine end at 0"
        ),
        effect=Effect.LEARNING,
        changes_memory=False,
    )
    lr_warmup_steps: float = setting(
        0.0,
        (
            "steps in which the learning rate rises from 0; a number below 1 is a share of the "
            "whole training's steps"
        ),
        bound=NOT_NEGATIVE,
        effect=Effect.LEARNING,
        changes_memory=False,
    )
    weight_decay: float = setting(
        0.0,
        "decay of weight matrices; biases and norms have none",
        bound=NOT_NEGATIVE,
        effect=Effect.LEARNING,
        changes_memory=False,
    )
    gradient_clip_norm: float | None = setting(
        None,
        "the norm to which gradients are clipped",
        bound=POSITIVE,
        default="no clipping",
        effect=Effect.LEARNING,
    )
    seed: int = setting(
        0,
        (
            "the seed of weights, data order and dropout in the first trial; trial k trains with "
            "seed + k - 1"
        ),
        bound=Bound(least=0, most=MOST_SEED),
        effect=Effect.LEARNING,
        changes_memory=False,
    )
    loader_workers: int = setting(
        0,
        (
            "worker processes of the data loader in each training process; 0 loads in that "
            "process itself"
        ),
        bound=Bound(least=0, most=1024),
        changes_memory=False,
    )
    pin_memory: bool = setting(
        False, "copy batches to page-locked host memory", changes_memory=False
    )
    padding: Padding = setting(
        Padding.MAX_LENGTH,
        "the length to which the sequences of a batch are padded; bucket groups like lengths",
    )
    packing: bool = setting(
        True,
        "join texts into full sequences without padding; has no effect on classification",
        effect=Effect.LEARNING,
    )
    document_masking: bool = setting(
        False,
        (
            "in packed sequences of causal-lm, attend within each text only, with positions that "
            "begin at 0"
        ),
        effect=Effect.LEARNING,
    )
    activation_checkpointing: bool = setting(
        False, "compute activations again in the backward pass instead of keeping them"
    )
    loss_chunks: int | None = setting(
        None,
        "rows of logits that the loss holds at a time: head and cross entropy are computed for so "
        "many tokens, and again in the backward pass",
        bound=SAMPLES,
        unit="tokens",
        default="all rows at once",
    )
    activation_offloading: bool = setting(False, "keep activations in host memory; needs a GPU")
    shard_scope: ShardScope = setting(
        ShardScope.FULL,
        (
            "full shards over all processes; hybrid shards within an instance and replicates "
            "across instances"
        ),
        used_by=(Strategy.FSDP,),
    )
    replicate_degree: int | None = setting(
        None,
        "groups of processes that hold equal shards and average their gradients",
        bound=SAMPLES,
        default="1, or what the other degrees leave",
        used_by=(Strategy.MESH,),
        effect=Effect.DEGREE,
    )
    shard_degree: int | None = setting(
        None,
        "processes over which each parameter, gradient and optimizer state is sharded",
        bound=SAMPLES,
        default="what the other degrees leave",
        used_by=(Strategy.MESH,),
        effect=Effect.DEGREE,
    )
    tensor_degree: int | None = setting(
        None,
        "processes that share the matrices of each block",
        bound=SAMPLES,
        default="all processes; with strategy mesh 1",
        used_by=(Strategy.TENSOR, Strategy.MESH),
        effect=Effect.DEGREE,
    )
    tensor_plan: TensorLayers | None = setting(
        None,
        (
            "the layers that are divided: {colwise: [layers.*.mlp.up_proj], rowwise: "
            "[layers.*.mlp.down_proj]}"
        ),
        default="the model's own plan",
        used_by=(Strategy.TENSOR, Strategy.MESH),
        is_fixed_by_checkpoints=True,
    )
    pipeline_degree: int | None = setting(
        None,
        "processes among which the blocks are divided",
        bound=SAMPLES,
        default="all processes; with strategy mesh 1",
        used_by=(Strategy.PIPELINE, Strategy.MESH),
        effect=Effect.DEGREE,
    )
    pipeline_schedule: PipelineSchedule = setting(
        PipelineSchedule.GPIPE,
        "the order of forward and backward passes of micro-batches",
        used_by=(Strategy.PIPELINE, Strategy.MESH),
    )
    micro_batches: int = setting(
        1,
        "parts into which a batch is divided",
        bound=SAMPLES,
        used_by=(Strategy.PIPELINE, Strategy.MESH),
    )
    dropout: float | None = setting(
        None,
        "every dropout rate of the model",
        bound=Bound(least=0, most=1),
        default="the model's own",
        effect=Effect.LEARNING,
    )
    adapter: Adapter | None = setting(
        None,
        "{rank: 16} trains LoRA of this rank and freezes the model; none trains all of it",
        effect=Effect.LEARNING,
    )
    base_weights: BaseWeights = setting(
        BaseWeights.FP32,
        "beside an adapter: the type of the frozen weights; with nf4 (QLoRA), head, embeddings and "
        "routers have the type of precision",
        effect=Effect.LEARNING,
    )
    image: str | None = setting(
        None,
        "a container image of your own, or repository:tag of one of AWS's",
        default="the lab's",
        is_seen_by_scripts=True,
        changes_memory=False,
    )

    @property
    def batch_size(self) -> int:
        """The batch per device; the batch of the first probe for a cell that searches it."""
        size = self.batch_size_per_device
        return size.begin if isinstance(size, BatchSearch) else size

    @property
    def rate(self) -> LearningRate:
        """The learning rate of what is trained: an adapter may have its own."""
        own = self.adapter.learning_rate if self.adapter else None
        return self.learning_rate if own is None else replace(self.learning_rate, base=own)

    @property
    def batch_search(self) -> BatchSearch | None:
        size = self.batch_size_per_device
        return size if isinstance(size, BatchSearch) else None


@cache
def setting_types() -> dict[str, Any]:
    """Type of each setting."""
    return get_type_hints(Settings)


@cache
def setting_descriptions() -> dict[str, SettingDescription]:
    """Description of each setting, in the order of the fields."""
    return {member.name: member.metadata[KEY] for member in fields(Settings)}


@cache
def seen_by_scripts() -> frozenset[str]:
    """The settings that can vary for a user's own script."""
    return frozenset(
        name
        for name, description in setting_descriptions().items()
        if description.is_seen_by_scripts
    )


def fixed_for_scripts() -> frozenset[str]:
    """Those that a suite of a script can fix: the trials' seeds follow from one."""
    return seen_by_scripts() | {"seed"}


def settings_with(*effects: Effect) -> tuple[str, ...]:
    """The settings that change one of these, in the order of the fields."""
    return tuple(
        name
        for name, description in setting_descriptions().items()
        if description.effect in effects
    )


def settings_of_checkpoints() -> tuple[str, ...]:
    """The settings whose value a checkpoint fixes, in the order of the fields."""
    return tuple(
        name
        for name, description in setting_descriptions().items()
        if description.is_fixed_by_checkpoints
    )


def options_of_strategies() -> tuple[str, ...]:
    """The settings that only some strategies use: with other strategies they have no effect."""
    return tuple(
        name for name, description in setting_descriptions().items() if description.used_by
    )


def has_effect(name: str, settings: Settings) -> bool:
    """Whether the cell's strategy uses this setting."""
    used_by = setting_descriptions()[name].used_by
    return not used_by or settings.strategy in used_by
