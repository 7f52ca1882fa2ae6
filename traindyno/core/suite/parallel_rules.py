"""How a model may be cut over processes: degrees, stages and micro-batches, as training/strategies cuts it."""

from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.instances.instance_types import InstanceType
from traindyno.core.suite.cells import world_size
from traindyno.core.suite.impossible import Impossible
from traindyno.core.suite.suite import PipelineSchedule, Settings, Strategy, Workload

DEGREE_FIELDS = {Strategy.TENSOR: "tensor_degree", Strategy.PIPELINE: "pipeline_degree"}
PIPELINE_MODELS = ("gpt2", "gptj", "bert", "albert")
STAGES_PER_PROCESS = {PipelineSchedule.INTERLEAVED: 2}
BLOCK_COUNTS = ("num_hidden_layers", "n_layer")
HEAD_COUNTS = ("num_attention_heads", "n_head")


def check_degrees(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    for strategy, field in DEGREE_FIELDS.items():
        degree: int | None = getattr(settings, field)
        if settings.strategy is strategy:
            yield from _degree(settings, field, degree)
        elif degree is not None:
            reason = f"{field} has no effect with strategy {settings.strategy}: expected strategy {strategy}"
            yield Impossible(field=field, reason=reason)


def _degree(settings: Settings, field: str, degree: int | None) -> Iterator[Impossible]:
    """Without a degree, all processes hold one replica together."""
    processes = world_size(settings)
    if processes is None:
        reason = f"the number of devices of {settings.instance} is not known, so {field} can't be checked"
        yield Impossible(field="instance", reason=reason)
    elif (degree or processes) < 2:
        reason = f"strategy {settings.strategy} needs {field} of 2 or more, got {degree or processes}"
        yield Impossible(field=field, reason=reason)
    elif processes % (degree or processes):
        reason = f"{field} {degree} does not divide the {processes} processes of the job"
        yield Impossible(field=field, reason=reason)


def check_micro_batches(settings: Settings, _: InstanceType) -> Iterator[Impossible]:
    count, degree = settings.micro_batches, replica_processes(settings)
    if settings.strategy is not Strategy.PIPELINE:
        if count != 1:
            reason = f"micro_batches has no effect with strategy {settings.strategy}: expected strategy pipeline"
            yield Impossible(field="micro_batches", reason=reason)
        return
    if settings.batch_size_per_device % count:
        reason = f"micro_batches {count} does not divide batch_size_per_device {settings.batch_size_per_device}"
        yield Impossible(field="micro_batches", reason=reason)
    if settings.pipeline_schedule is PipelineSchedule.ONE_F_ONE_B and degree and count < degree:
        reason = f"pipeline_schedule 1f1b needs micro_batches of {degree} or more, one for each stage, got {count}"
        yield Impossible(field="micro_batches", reason=reason)
    if settings.pipeline_schedule is PipelineSchedule.INTERLEAVED and degree and count % max(1, count // degree):
        reason = f"pipeline_schedule interleaved runs micro_batches in {count // degree} equal rounds, got {count}"
        yield Impossible(field="micro_batches", reason=reason)


def replica_processes(settings: Settings) -> int | None:
    """How many processes hold one replica of the model together; None where that is not known."""
    field = DEGREE_FIELDS.get(settings.strategy)
    return 1 if field is None else getattr(settings, field) or world_size(settings)


def check_model(settings: Settings, workload: Workload) -> Iterator[Impossible]:
    """What a model's config says; of a model by its name nothing is known here."""
    config = workload.model.config if workload.model else None
    degree = replica_processes(settings)
    if config is None or degree is None:
        return
    kind = config.get("model_type")
    if settings.strategy is Strategy.PIPELINE and kind not in PIPELINE_MODELS:
        reason = f"strategy pipeline can cut {', '.join(PIPELINE_MODELS)} into stages, not model type {kind}"
        yield Impossible(field="strategy", reason=reason)
    stages, blocks = degree * STAGES_PER_PROCESS.get(settings.pipeline_schedule, 1), _first(config, BLOCK_COUNTS)
    if settings.strategy is Strategy.PIPELINE and blocks is not None and blocks < stages:
        reason = f"{stages} stages need a block each, and the model has {blocks} blocks"
        yield Impossible(field="pipeline_degree", reason=reason)
    heads = _first(config, HEAD_COUNTS)
    if settings.strategy is Strategy.TENSOR and heads is not None and heads % degree:
        reason = f"tensor_degree {degree} does not divide the model's {heads} attention heads"
        yield Impossible(field="tensor_degree", reason=reason)


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((config[name] for name in names if isinstance(config.get(name), int)), None)
