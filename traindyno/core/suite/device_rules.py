"""What an instance type can run: its launchers, compilers and number formats."""

from collections.abc import Iterator

from traindyno.core.instances.instance_types import AcceleratorKind, InstanceType
from traindyno.core.suite.impossible import Impossible
from traindyno.core.suite.suite import Compiler, Precision, Settings, ShardScope, Strategy

SMDDP_FAMILIES = ("p4d", "p4de", "p3dn")
TRAINING_COMPILER_FAMILIES = ("p3", "p3dn", "g4dn", "p4d", "g5")
NATIVE_NEURON_FAMILIES = ("trn2",)
XLA_STRATEGIES = (Strategy.SINGLE, Strategy.DDP)


def check_instance(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if not instance_type.has_training_quota:
        yield Impossible(field="instance", reason=f"AWS offers no training quota for {instance_type.name} any more")
    if instance_type.name == "local.gpu" and settings.instance_count > 1:
        yield Impossible(field="instance_count", reason="local.gpu is one machine's GPU: expected instance_count 1")
    if settings.strategy is Strategy.SINGLE and settings.instance_count > 1:
        reason = "strategy single runs one process: expected instance_count 1, or strategy ddp"
        yield Impossible(field="instance_count", reason=reason)


def check_smddp(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if settings.strategy is Strategy.SMDDP and instance_type.family not in SMDDP_FAMILIES:
        families = ", ".join(f"ml.{family}" for family in SMDDP_FAMILIES)
        reason = f"strategy smddp runs on {families} only, got {instance_type.name}"
        yield Impossible(field="strategy", reason=reason)


def check_compiler(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    kind = instance_type.accelerator_kind
    compiler = settings.compiler
    if kind is AcceleratorKind.NEURON and compiler in (Compiler.NONE, Compiler.INDUCTOR):
        reason = f"{instance_type.name} runs compiled graphs only: expected compiler xla or neuron, got {compiler}"
        yield Impossible(field="compiler", reason=reason)
    if compiler is Compiler.NEURON and instance_type.family not in NATIVE_NEURON_FAMILIES:
        families = ", ".join(f"ml.{family}" for family in NATIVE_NEURON_FAMILIES)
        reason = f"compiler neuron (TorchNeuron) runs on {families} only, got {instance_type.name}"
        yield Impossible(field="compiler", reason=reason)
    if compiler is Compiler.XLA and settings.strategy not in XLA_STRATEGIES:
        reason = f"compiler xla runs with strategy {', '.join(XLA_STRATEGIES)}, got {settings.strategy}"
        yield Impossible(field="strategy", reason=reason)


def check_xla_in_training(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    """The Training Compiler's images stopped at Python 3.9, which is too old for the built-in tasks."""
    if settings.compiler is Compiler.XLA and not _runs_xla(instance_type):
        reason = f"compiler xla runs the built-in tasks on Trainium and local.cpu, got {instance_type.name}"
        yield Impossible(field="compiler", reason=reason)


def check_xla_in_scripts(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    offered = _runs_xla(instance_type) or instance_type.family in TRAINING_COMPILER_FAMILIES
    if settings.compiler is Compiler.XLA and not offered:
        families = ", ".join(f"ml.{family}" for family in TRAINING_COMPILER_FAMILIES)
        reason = f"compiler xla runs on Trainium, {families} and local.cpu, got {instance_type.name}"
        yield Impossible(field="compiler", reason=reason)


def _runs_xla(instance_type: InstanceType) -> bool:
    return instance_type.accelerator_kind is AcceleratorKind.NEURON or instance_type.name == "local.cpu"


def check_precision(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if settings.precision is Precision.FP16 and instance_type.accelerator_kind is not AcceleratorKind.GPU:
        reason = f"precision fp16 needs a GPU, got {instance_type.name}: expected fp32 or bf16"
        yield Impossible(field="precision", reason=reason)


def check_offloading(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if settings.activation_offloading and instance_type.accelerator_kind is not AcceleratorKind.GPU:
        reason = f"activation_offloading moves activations from a GPU to its host, and {instance_type.name} has none"
        yield Impossible(field="activation_offloading", reason=reason)


def check_effect(settings: Settings, instance_type: InstanceType) -> Iterator[Impossible]:
    if settings.shard_scope is ShardScope.HYBRID and settings.strategy is not Strategy.FSDP:
        reason = f"shard_scope hybrid has no effect with strategy {settings.strategy}: expected strategy fsdp"
        yield Impossible(field="shard_scope", reason=reason)
    elif settings.shard_scope is ShardScope.HYBRID and instance_type.devices_per_instance == 1:
        reason = f"shard_scope hybrid shards within an instance, and {instance_type.name} has one device: expected full"
        yield Impossible(field="shard_scope", reason=reason)
    if settings.prefetch_factor is not None and settings.loader_workers == 0:
        yield Impossible(field="prefetch_factor", reason="prefetch_factor needs loader_workers of 1 or more, got 0")
