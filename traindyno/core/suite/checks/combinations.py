"""Settings that can't be combined, each combination with its reason.

A new rule is a new function.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.core.instances.devices import AcceleratorKind
from traindyno.core.instances.instance_types import (
    InstanceType,
    find_instance_type,
)
from traindyno.core.run.processes import (
    Degrees,
    degree_that_follows,
    degrees_of,
    dividing_batches,
    given_degrees,
    nearest_degrees_text,
    replica_count,
    stage_count,
    world_size,
)
from traindyno.core.run.settings import (
    DOCUMENT_CHECK_TOKENS,
    Effect,
    Settings,
    has_effect,
    setting_descriptions,
    settings_with,
)
from traindyno.core.run.workload import Workload
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import (
    TRAITS,
    BaseWeights,
    Compiler,
    DatasetFormat,
    Padding,
    PipelineSchedule,
    Precision,
    ShardScope,
    Task,
    strategies_with,
)

SMDDP_FAMILIES = ("p4d", "p4de", "p3dn")
TRAINING_COMPILER_FAMILIES = ("p3", "p3dn", "g4dn", "p4d", "g5")
NATIVE_NEURON_FAMILIES = ("trn2",)
XLA_STRATEGIES = strategies_with(lambda traits: traits.runs_with_xla)
ADAPTER_STRATEGIES = strategies_with(lambda traits: traits.trains_adapters)
BLOCK_COUNTS = ("num_hidden_layers", "n_layer")
HEAD_COUNTS = ("num_attention_heads", "n_head")


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """A setting that can't be combined with the others of its cell; ``field`` is the setting to
    change.
    """

    field: str
    reason: str


def find_impossible(cell: Cell, workload: Workload) -> list[Impossible]:
    """The settings that can't work in this cell.

    A user's script is checked for its launcher, not its model.
    """
    instance_type = find_instance_type(cell.settings.instance)
    if instance_type is None:
        return []
    rules = LAUNCH_RULES + (SCRIPT_RULES if workload.task is Task.SCRIPT else TRAINING_RULES)
    impossible_settings = [
        impossible for rule in rules for impossible in rule(cell.settings, instance_type)
    ]
    if workload.task is not Task.SCRIPT:
        for check in WORKLOAD_RULES:
            impossible_settings += check(cell.settings, workload)
    return impossible_settings


def check_instance(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if not instance_type.has_training_quota:
        yield Impossible(
            field="instance",
            reason=f"AWS offers no training quota for {instance_type.name} any more",
        )
    if instance_type.name == "local.gpu" and settings.instance_count > 1:
        yield Impossible(
            field="instance_count",
            reason="local.gpu is one machine's GPU: expected instance_count 1",
        )
    if TRAITS[settings.strategy].one_process and settings.instance_count > 1:
        reason = (
            f"strategy {settings.strategy} runs one process: expected instance_count 1, or "
            "strategy ddp"
        )
        yield Impossible(field="instance_count", reason=reason)


def check_smddp(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if (
        TRAITS[settings.strategy].sagemaker_collectives
        and instance_type.family not in SMDDP_FAMILIES
    ):
        families = ", ".join(f"ml.{family}" for family in SMDDP_FAMILIES)
        reason = (
            f"strategy {settings.strategy} does not run on {instance_type.name}: expected "
            f"{families}"
        )
        yield Impossible(field="strategy", reason=reason)


def check_image(settings: Settings, workload: Workload) -> Iterator[Impossible]:
    """Whether an image of AWS or of the lab can run a built-in task, if the suite names no
    image.
    """
    if settings.image or workload.image:
        return
    if TRAITS[settings.strategy].sagemaker_collectives:
        reason = (
            f"AWS's images with strategy {settings.strategy} lack transformers and datasets, which "
            "the built-in tasks need: set workload.image to an image that has them too, or use "
            "task script"
        )
        yield Impossible(field="strategy", reason=reason)
    if settings.compiler is Compiler.NEURON:
        reason = (
            "the lab has no image with TorchNeuron, which compiler neuron needs:"
            " set workload.image to an image that has it, or use compiler xla"
        )
        yield Impossible(field="compiler", reason=reason)


def check_compiler(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    kind = instance_type.accelerator_kind
    compiler = settings.compiler
    if kind is AcceleratorKind.NEURON and compiler in (Compiler.NONE, Compiler.INDUCTOR):
        reason = f"compiler {compiler} does not run on {instance_type.name}: expected xla or neuron"
        yield Impossible(field="compiler", reason=reason)
    if compiler is Compiler.NEURON and instance_type.family not in NATIVE_NEURON_FAMILIES:
        families = ", ".join(f"ml.{family}" for family in NATIVE_NEURON_FAMILIES)
        reason = (
            f"compiler neuron (TorchNeuron) does not run on {instance_type.name}: expected "
            f"{families}"
        )
        yield Impossible(field="compiler", reason=reason)
    if compiler is Compiler.XLA and settings.strategy not in XLA_STRATEGIES:
        reason = (
            f"compiler xla does not run with strategy {settings.strategy}: expected "
            f"{', '.join(XLA_STRATEGIES)}"
        )
        yield Impossible(field="strategy", reason=reason)


def check_xla_in_training(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    """The Training Compiler's latest images have Python 3.9, which is too old for the built-in
    tasks.
    """
    if settings.compiler is Compiler.XLA and not _runs_xla(instance_type):
        reason = (
            f"compiler xla does not run the built-in tasks on {instance_type.name}: expected "
            "Trainium or local.cpu"
        )
        yield Impossible(field="compiler", reason=reason)


def check_xla_in_scripts(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    offered = _runs_xla(instance_type) or instance_type.family in TRAINING_COMPILER_FAMILIES
    if settings.compiler is Compiler.XLA and not offered:
        families = ", ".join(f"ml.{family}" for family in TRAINING_COMPILER_FAMILIES)
        reason = (
            f"compiler xla does not run on {instance_type.name}: expected Trainium, {families} or "
            "local.cpu"
        )
        yield Impossible(field="compiler", reason=reason)


def _runs_xla(instance_type: InstanceType) -> bool:
    return (
        instance_type.accelerator_kind is AcceleratorKind.NEURON
        or instance_type.name == "local.cpu"
    )


def check_precision(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if (
        settings.precision is Precision.FP16
        and instance_type.accelerator_kind is not AcceleratorKind.GPU
    ):
        reason = (
            f"{instance_type.name} has no GPU, which precision fp16 needs: expected fp32 or bf16"
        )
        yield Impossible(field="precision", reason=reason)


def check_offloading(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if settings.activation_offloading and instance_type.accelerator_kind is not AcceleratorKind.GPU:
        reason = (
            f"{instance_type.name} has no GPU, from which activation_offloading moves activations "
            "to the host"
        )
        yield Impossible(field="activation_offloading", reason=reason)


def check_adapter(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    if settings.adapter is None:
        return
    if not TRAITS[settings.strategy].trains_adapters:
        reason = (
            f"strategy {settings.strategy} divides or replaces the layers that an adapter is added "
            f"to: expected adapter none, or strategy {' or '.join(ADAPTER_STRATEGIES)}"
        )
        yield Impossible(field="adapter", reason=reason)
    if settings.compiler not in (Compiler.NONE, Compiler.INDUCTOR):
        reason = (
            f"the image of compiler {settings.compiler} has no peft, which adapters need: expected "
            "adapter none, or compiler none or inductor"
        )
        yield Impossible(field="adapter", reason=reason)


def check_base_weights(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    kind = settings.base_weights
    reason = None
    if kind is BaseWeights.FP32:
        return
    if settings.adapter is None:
        reason = f"base_weights {kind} are of a frozen model: expected an adapter, or fp32"
    elif kind is BaseWeights.BF16 and settings.precision is not Precision.BF16:
        reason = (
            f"base_weights bf16 with precision {settings.precision} would round what it computes: "
            "expected precision bf16"
        )
    elif kind is BaseWeights.NF4 and not TRAITS[settings.strategy].holds_whole_weights:
        reason = (
            f"strategy {settings.strategy} divides each weight, and one of 4 bits can't be "
            "divided: expected base_weights bf16, or strategy single, ddp or zero1"
        )
    elif kind is BaseWeights.NF4 and settings.compiler is not Compiler.NONE:
        reason = (
            f"compiler {settings.compiler} does not compile weights of 4 bits: expected compiler "
            "none, or base_weights bf16"
        )
    if reason is not None:
        yield Impossible(field="base_weights", reason=reason)


def check_effect(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    """Problems of settings that the strategy does not use: they must have their defaults.

    shard_scope and tensor_plan need what they divide.
    """
    plain = Settings(instance=settings.instance)
    for field, description in setting_descriptions().items():
        value = getattr(settings, field)
        if not has_effect(field, settings) and value != getattr(plain, field):
            named = f"{field} {value}" if isinstance(value, ShardScope) else field
            users = " or ".join(description.used_by)
            reason = (
                f"{named} has no effect with strategy {settings.strategy}: expected strategy "
                f"{users}"
            )
            yield Impossible(field=field, reason=reason)
    is_hybrid = settings.shard_scope is ShardScope.HYBRID and has_effect("shard_scope", settings)
    if is_hybrid and instance_type.devices_per_instance == 1:
        reason = (
            f"{instance_type.name} has one device, and shard_scope hybrid shards within an "
            "instance: expected full"
        )
        yield Impossible(field="shard_scope", reason=reason)
    if (
        settings.tensor_plan
        and has_effect("tensor_plan", settings)
        and not settings.tensor_plan.styles()
    ):
        reason = (
            "tensor_plan divides no layer: expected a path of a linear layer, such as colwise: "
            "[layers.*.mlp.up_proj]"
        )
        yield Impossible(field="tensor_plan", reason=reason)


def check_degrees(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    used = [field for field in settings_with(Effect.DEGREE) if has_effect(field, settings)]
    processes = world_size(settings)
    if used and processes:
        yield from _check_product(settings, used, processes)


def _check_product(settings: Settings, used: list[str], processes: int) -> Iterator[Impossible]:
    degrees = degrees_of(settings, processes)
    given = given_degrees(settings)
    if len(used) == 1 and degrees.per_replica < 2:
        reason = (
            f"{used[0]} is {degrees.per_replica} with strategy {settings.strategy}: expected 2 or "
            "more"
        )
        yield Impossible(field=used[0], reason=reason)
    elif degrees.processes != processes:
        asked = " × ".join(f"{name}_degree {degree}" for name, degree in given.items())
        verb = "divide" if degree_that_follows(settings) else "equal"
        nearest = nearest_degrees_text(settings, processes)
        reason = f"{asked} does not {verb} the {processes} processes of the job: expected {nearest}"
        yield Impossible(field=f"{next(iter(given))}_degree", reason=reason)


def check_global_batch(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    """A global batch is kept exactly: a batch per device that does not divide it is no other batch
    by rounding.
    """
    if settings.global_batch_size is None:
        return
    if settings.gradient_accumulation_steps != 1:
        reason = (
            f"gradient_accumulation_steps {settings.gradient_accumulation_steps} beside "
            f"global_batch_size {settings.global_batch_size}, from which the steps follow: "
            "expected one of the two"
        )
        yield Impossible(field="gradient_accumulation_steps", reason=reason)
        return
    processes = world_size(settings)
    if processes is not None:
        yield from _check_division(settings, processes)


def _check_division(settings: Settings, processes: int) -> Iterator[Impossible]:
    whole = settings.global_batch_size
    replicas = replica_count(settings, processes)
    possible = dividing_batches(settings, processes) or ()
    if whole is None or not replicas:  # check_degrees refuses the degrees
        return
    if not possible:
        unit = replicas * (settings.micro_batches if has_effect("micro_batches", settings) else 1)
        nearest = " or ".join(
            str(size) for size in (whole // unit * unit, (whole // unit + 1) * unit) if size
        )
        reason = (
            f"global_batch_size {whole} is no multiple of {unit}, for {replicas} replicas: "
            f"expected {nearest}"
        )
        yield Impossible(field="global_batch_size", reason=reason)
    elif settings.batch_search is None and settings.batch_size not in possible:
        below = [size for size in possible if size < settings.batch_size]
        above = [size for size in possible if size > settings.batch_size]
        nearest = " or ".join(map(str, [*below[-1:], *above[:1]]))
        reason = (
            f"batch_size_per_device {settings.batch_size} on {replicas} replicas does not divide "
            f"global_batch_size {whole}: expected {nearest}"
        )
        yield Impossible(field="batch_size_per_device", reason=reason)


def check_micro_batches(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    count = settings.micro_batches
    degrees = _planned_degrees(settings)
    degree = degrees.pipeline if degrees else 0
    if degree == 1 or not has_effect("micro_batches", settings):
        return
    if settings.batch_size % count:
        reason = (
            f"micro_batches {count} does not divide batch_size_per_device {settings.batch_size}"
        )
        yield Impossible(field="micro_batches", reason=reason)
    if settings.pipeline_schedule is PipelineSchedule.ONE_F_ONE_B and degree and count < degree:
        reason = (
            f"micro_batches is {count} with pipeline_schedule 1f1b: expected {degree} or more, one "
            "for each stage"
        )
        yield Impossible(field="micro_batches", reason=reason)
    if (
        settings.pipeline_schedule is PipelineSchedule.INTERLEAVED
        and degree
        and count % max(1, count // degree)
    ):
        reason = (
            f"micro_batches {count} does not fill {count // degree} equal rounds of "
            "pipeline_schedule interleaved"
        )
        yield Impossible(field="micro_batches", reason=reason)


def check_degree_one(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    """Problems of settings that say how a mesh divides the model, where no mesh divides it so."""
    degrees = _planned_degrees(settings)
    if degrees is None:
        return
    given = {
        ("micro_batches", "pipeline"): settings.micro_batches != 1,
        ("pipeline_schedule", "pipeline"): settings.pipeline_schedule is not PipelineSchedule.GPIPE,
        ("tensor_plan", "tensor"): settings.tensor_plan is not None,
    }
    for (field, dimension), is_given in given.items():
        if is_given and has_effect(field, settings) and getattr(degrees, dimension) == 1:
            reason = (
                f"{field} has no effect with {dimension}_degree 1: leave it out, or give 2 or more"
            )
            yield Impossible(field=field, reason=reason)


def _planned_degrees(settings: Settings) -> Degrees | None:
    """Degrees of the cell's job; None if the number of its processes is unknown."""
    processes = world_size(settings)
    return None if processes is None else degrees_of(settings, processes)


def check_model(settings: Settings, workload: Workload) -> Iterator[Impossible]:
    """Check the model by its configuration; a model that is given by name is not checked here."""
    config = workload.model.config if workload.model else None
    degrees = _planned_degrees(settings)
    if config is None or degrees is None:
        return
    stages = stage_count(settings, degrees)
    blocks = _first(config, BLOCK_COUNTS)
    heads = _first(config, HEAD_COUNTS)
    if degrees.pipeline > 1 and blocks is not None and blocks < stages:
        reason = f"the model has {blocks} blocks: expected at least {stages}, one for each stage"
        yield Impossible(field="pipeline_degree", reason=reason)
    if settings.tensor_plan is None and heads is not None and heads % degrees.tensor:
        reason = (
            f"tensor_degree {degrees.tensor} does not divide the model's {heads} attention heads"
        )
        yield Impossible(field="tensor_degree", reason=reason)


def check_document_masking(settings: Settings, workload: Workload) -> Iterator[Impossible]:
    if not settings.document_masking:
        return
    dataset = workload.dataset
    if workload.task is not Task.CAUSAL_LM or not settings.packing:
        reason = (
            "document_masking has no effect without packed texts: expected task causal-lm and "
            "packing true"
        )
        yield Impossible(field="document_masking", reason=reason)
    elif dataset is not None and dataset.format is DatasetFormat.SYNTHETIC:
        reason = (
            "a synthetic dataset has no documents: expected document_masking false, or a dataset "
            "of texts"
        )
        yield Impossible(field="document_masking", reason=reason)
    elif workload.sequence_length is not None and workload.sequence_length < DOCUMENT_CHECK_TOKENS:
        reason = (
            f"document_masking is tried on {DOCUMENT_CHECK_TOKENS} tokens before the first step: "
            "expected a sequence_length of at least that"
        )
        yield Impossible(field="document_masking", reason=reason)
    elif (degrees := _planned_degrees(settings)) and degrees.pipeline > 1:
        reason = (
            f"strategy {settings.strategy} has no document_masking between stages: expected "
            "strategy ddp or fsdp"
        )
        yield Impossible(field="document_masking", reason=reason)


def check_loss_chunks(settings: Settings, workload: Workload) -> Iterator[Impossible]:
    if settings.loss_chunks is None:
        return
    if workload.task is Task.SEQUENCE_CLASSIFICATION:
        reason = (
            "loss_chunks has no effect on sequence-classification, which has one row of logits for "
            "each text: leave it out"
        )
        yield Impossible(field="loss_chunks", reason=reason)
    elif (degrees := _planned_degrees(settings)) and degrees.pipeline > 1:
        reason = (
            f"strategy {settings.strategy} computes the loss on its last stage, without "
            "loss_chunks: leave it out, or expected strategy ddp or fsdp"
        )
        yield Impossible(field="loss_chunks", reason=reason)


def check_padding(settings: Settings, workload: Workload) -> Iterator[Impossible]:
    """Problems of padding in a pipeline or with shards.

    A stage is tried for each new shape of a batch, and gathers its shards: shards with other shapes
    wait.
    """
    degrees = _planned_degrees(settings)
    is_chat = workload.dataset is not None and workload.dataset.format is DatasetFormat.CHAT
    # Conversations are packed whole, so that sequences stay of different lengths.
    is_full = settings.packing and workload.task is not Task.SEQUENCE_CLASSIFICATION
    is_packed = is_full and not is_chat
    if settings.padding is Padding.MAX_LENGTH or is_packed or degrees is None:
        return
    if degrees.shard > 1 and degrees.pipeline > 1:
        reason = (
            f"padding {settings.padding} gives processes batches of different lengths, for which "
            "the shards of a pipeline's stages would wait for each other: expected padding "
            "max-length, packed texts, shard_degree 1 or pipeline_degree 1"
        )
        yield Impossible(field="padding", reason=reason)


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((config[name] for name in names if isinstance(config.get(name), int)), None)


Rule = Callable[[Settings, InstanceType], Iterator[Impossible]]

LAUNCH_RULES: tuple[Rule, ...] = (check_instance, check_smddp)
SCRIPT_RULES: tuple[Rule, ...] = (check_xla_in_scripts,)
WORKLOAD_RULES = (
    check_model,
    check_document_masking,
    check_loss_chunks,
    check_padding,
    check_image,
)
TRAINING_RULES: tuple[Rule, ...] = (
    check_xla_in_training,
    check_compiler,
    check_precision,
    check_offloading,
    check_adapter,
    check_base_weights,
    check_degrees,
    check_global_batch,
    check_micro_batches,
    check_degree_one,
    check_effect,
)
