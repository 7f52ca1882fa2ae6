"""Settings that exist one by one but not together, each with its reason. A new rule is one function below."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from traindyno.core.cells import world_size
from traindyno.core.instance_types import AcceleratorKind, InstanceType, find_instance_type
from traindyno.core.suite import (
    Cell,
    Compiler,
    PipelineSchedule,
    Precision,
    Settings,
    ShardScope,
    Strategy,
    Task,
    Workload,
)

SMDDP_FAMILIES = ("p4d", "p4de", "p3dn")
TRAINING_COMPILER_FAMILIES = ("p3", "p3dn", "g4dn", "p4d", "g5")
XLA_STRATEGIES = (Strategy.SINGLE, Strategy.DDP, Strategy.ZERO1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """``field`` is the setting to change."""

    field: str
    reason: str


Rule = Callable[[Settings, InstanceType], Iterator[Impossible]]


def find_impossible(cell: Cell, workload: Workload) -> list[Impossible]:
    """What can't work in this cell. A user's script answers for its own model; only its launcher is checked."""
    instance_type = find_instance_type(cell.settings.instance)
    if instance_type is None:
        return []
    rules = LAUNCH_RULES + (SCRIPT_RULES if workload.task is Task.SCRIPT else TRAINING_RULES)
    found = [impossible for rule in rules for impossible in rule(cell.settings, instance_type)]
    if workload.task is not Task.SCRIPT:
        found += _model_rules(cell.settings, workload)
    return found


def _instance(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if not instance_type.has_training_quota:
        yield Impossible(field="instance", reason=f"AWS offers no training quota for {instance_type.name} any more")
    if instance_type.name == "local.gpu" and settings.instance_count > 1:
        yield Impossible(field="instance_count", reason="local.gpu is one machine's GPU: expected instance_count 1")
    if settings.strategy is Strategy.SINGLE and settings.instance_count > 1:
        reason = "strategy single runs one process: expected instance_count 1, or strategy ddp"
        yield Impossible(field="instance_count", reason=reason)


def _smddp(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if settings.strategy is Strategy.SMDDP and instance_type.family not in SMDDP_FAMILIES:
        families = ", ".join(f"ml.{family}" for family in SMDDP_FAMILIES)
        reason = f"strategy smddp runs on {families} only, got {instance_type.name}"
        yield Impossible(field="strategy", reason=reason)


def _compiler(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    kind = instance_type.accelerator_kind
    compiler = settings.compiler
    if kind is AcceleratorKind.NEURON and compiler in (Compiler.NONE, Compiler.INDUCTOR):
        reason = f"{instance_type.name} runs compiled graphs only: expected compiler xla or neuron, got {compiler}"
        yield Impossible(field="compiler", reason=reason)
    if compiler is Compiler.NEURON and kind is not AcceleratorKind.NEURON:
        reason = f"compiler neuron needs a Trainium instance, got {instance_type.name}"
        yield Impossible(field="compiler", reason=reason)
    if compiler is Compiler.XLA and settings.strategy not in XLA_STRATEGIES:
        reason = f"compiler xla runs with strategy {', '.join(XLA_STRATEGIES)}, got {settings.strategy}"
        yield Impossible(field="strategy", reason=reason)


def _xla_in_training(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    """The Training Compiler's images stopped at Python 3.9, which is too old for the built-in tasks."""
    if settings.compiler is Compiler.XLA and not _runs_xla(instance_type):
        reason = f"compiler xla runs the built-in tasks on Trainium and local.cpu, got {instance_type.name}"
        yield Impossible(field="compiler", reason=reason)


def _xla_in_scripts(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    offered = _runs_xla(instance_type) or instance_type.family in TRAINING_COMPILER_FAMILIES
    if settings.compiler is Compiler.XLA and not offered:
        families = ", ".join(f"ml.{family}" for family in TRAINING_COMPILER_FAMILIES)
        reason = f"compiler xla runs on Trainium, {families} and local.cpu, got {instance_type.name}"
        yield Impossible(field="compiler", reason=reason)


def _runs_xla(instance_type: InstanceType) -> bool:
    return instance_type.accelerator_kind is AcceleratorKind.NEURON or instance_type.name == "local.cpu"


def _precision(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if settings.precision is Precision.FP16 and not instance_type.has_accelerator:
        reason = f"precision fp16 needs an accelerator, got {instance_type.name}: expected fp32 or bf16"
        yield Impossible(field="precision", reason=reason)


def _degrees(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    for strategy, field in ((Strategy.TENSOR, "tensor_degree"), (Strategy.PIPELINE, "pipeline_degree")):
        degree: int | None = getattr(settings, field)
        if settings.strategy is strategy:
            yield from _degree(settings, field, degree)
        elif degree is not None:
            reason = f"{field} has no effect with strategy {settings.strategy}: expected strategy {strategy}"
            yield Impossible(field=field, reason=reason)


def _degree(settings: Settings, field: str, degree: int | None) -> Iterator[Impossible]:
    processes = world_size(settings)
    if degree is None or degree < 2:
        reason = f"strategy {settings.strategy} needs {field} of 2 or more, got {degree or 'nothing'}"
        yield Impossible(field=field, reason=reason)
    elif processes is None:
        reason = f"the number of devices of {settings.instance} is not known, so {field} can't be checked"
        yield Impossible(field="instance", reason=reason)
    elif processes % degree:
        reason = f"{field} {degree} does not divide the {processes} processes of the job"
        yield Impossible(field=field, reason=reason)


def _micro_batches(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    count, degree = settings.micro_batches, settings.pipeline_degree
    if settings.strategy is not Strategy.PIPELINE:
        if count != 1:
            reason = f"micro_batches has no effect with strategy {settings.strategy}: expected strategy pipeline"
            yield Impossible(field="micro_batches", reason=reason)
        return
    if settings.batch_size_per_device % count:
        reason = f"micro_batches {count} does not divide batch_size_per_device {settings.batch_size_per_device}"
        yield Impossible(field="micro_batches", reason=reason)
    if settings.pipeline_schedule is PipelineSchedule.INTERLEAVED and degree and count % degree:
        reason = (
            f"pipeline_schedule interleaved needs micro_batches in multiples of pipeline_degree {degree}, got {count}"
        )
        yield Impossible(field="micro_batches", reason=reason)


def _pipeline_partners(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    if settings.strategy is Strategy.PIPELINE and settings.compiler is not Compiler.NONE:
        yield Impossible(
            field="compiler", reason=f"strategy pipeline runs uncompiled, got compiler {settings.compiler}"
        )
    if settings.strategy is Strategy.PIPELINE and settings.activation_checkpointing:
        reason = "strategy pipeline keeps its stages' activations: expected activation_checkpointing false"
        yield Impossible(field="activation_checkpointing", reason=reason)


def _without_effect(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    if settings.shard_scope is ShardScope.HYBRID and settings.strategy is not Strategy.FSDP:
        reason = f"shard_scope hybrid has no effect with strategy {settings.strategy}: expected strategy fsdp"
        yield Impossible(field="shard_scope", reason=reason)
    if settings.prefetch_factor is not None and settings.loader_workers == 0:
        yield Impossible(field="prefetch_factor", reason="prefetch_factor needs loader_workers of 1 or more, got 0")


def _model_rules(settings: Settings, workload: Workload) -> Iterator[Impossible]:
    interleaved = settings.pipeline_schedule is PipelineSchedule.INTERLEAVED
    if settings.strategy is Strategy.PIPELINE and interleaved and _model_family(workload) == "albert":
        reason = "ALBERT's layers share one block, which an interleaved pipeline would hold twice in one process"
        yield Impossible(field="pipeline_schedule", reason=reason)


def _model_family(workload: Workload) -> str | None:
    model = workload.model
    if model is None:
        return None
    if model.config is not None:
        return str(model.config.get("model_type"))
    return "albert" if "albert" in (model.path or "").lower() else None


LAUNCH_RULES: tuple[Rule, ...] = (_instance, _smddp)
SCRIPT_RULES: tuple[Rule, ...] = (_xla_in_scripts,)
TRAINING_RULES: tuple[Rule, ...] = (
    _xla_in_training,
    _compiler,
    _precision,
    _degrees,
    _micro_batches,
    _pipeline_partners,
    _without_effect,
)
