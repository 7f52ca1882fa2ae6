"""The rows of the table of strategies: what is trained, by how many processes, and what it is
compared with.

``make nightly`` trains every model in every row, ``make test`` each strategy and kind of
composition with one model.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.nightly import NIGHTLY
from tests.training.strategy_cases import MODELS, Case
from traindyno.core.run.settings import Adapter, LearningRate, TensorLayers
from traindyno.core.suite.choices import (
    BaseWeights,
    Compiler,
    OptimizerName,
    PipelineSchedule,
    Precision,
    ShardScope,
    Strategy,
)

ADAMW = {"optimizer": OptimizerName.ADAMW, "learning_rate": LearningRate(base=1e-3)}
REFERENCE_OPTIONS = (
    "optimizer",
    "learning_rate",
    "precision",
    "gradient_clip_norm",
    "seed",
    "adapter",
    "base_weights",
)
# FSDP keeps gradients in fp16 until they are reduced. With some initial weights one overflows at
# the first loss scale, and FSDP skips an update that one process makes; with those of this seed
# none does.
LOWER_SEED = 1
# The MLP of one block, and the attention of another.
CHOSEN_LAYERS = TensorLayers(
    colwise=(
        "layers.1.mlp.gate_proj",
        "layers.1.mlp.up_proj",
        *(f"layers.3.self_attn.{name}_proj" for name in "qkv"),
    ),
    rowwise=("layers.1.mlp.down_proj", "layers.3.self_attn.o_proj"),
)
# Each process gets the whole output of a divided layer, or takes its part of a whole input.
GATHERED_LAYERS = TensorLayers(
    colwise_gather_output=("layers.*.mlp.up_proj", "layers.*.self_attn.q_proj"),
    rowwise_split_input=("layers.*.mlp.down_proj", "layers.*.self_attn.o_proj"),
)
FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "ddp": {"strategy": Strategy.DDP},
    "zero1": {"strategy": Strategy.ZERO1, **ADAMW},
    "fsdp": {"strategy": Strategy.FSDP},
    "tensor": {"strategy": Strategy.TENSOR, "tensor_degree": 2},
    "pipeline": {"strategy": Strategy.PIPELINE, "pipeline_degree": 2, "micro_batches": 2},
}
SCHEDULES = [
    (schedule, {**FAMILIES["pipeline"], "pipeline_schedule": schedule, "micro_batches": 4})
    for schedule in PipelineSchedule
]
MEMORY_LABEL = "checkpointing, offloading, accumulation, clipping"
MEMORY_OPTIONS = {
    "activation_checkpointing": True,
    "activation_offloading": True,
    "gradient_accumulation_steps": 2,
    "gradient_clip_norm": 0.1,
}
DECODERS = ("gpt2", "gptj", "llama", "mixtral", "qwen3")
MESHES: Mapping[str, Mapping[str, int]] = {
    "shard × pipeline": {"shard_degree": 2, "pipeline_degree": 2, "micro_batches": 2},
    "replicate × pipeline": {"shard_degree": 1, "pipeline_degree": 2, "micro_batches": 2},
    "tensor × pipeline": {"tensor_degree": 2, "pipeline_degree": 2, "micro_batches": 2},
    "shard × tensor": {"shard_degree": 2, "tensor_degree": 2},
}
MESHES_OF_EIGHT: Mapping[str, Mapping[str, int]] = {
    "hybrid shard × tensor": {"replicate_degree": 2, "shard_degree": 2, "tensor_degree": 2},
    # Each replica has one sample: the global batch is of eight, in two accumulated parts.
    "hybrid shard × pipeline": {
        "replicate_degree": 2,
        "shard_degree": 2,
        "pipeline_degree": 2,
        "micro_batches": 1,
    },
    "shard × tensor × pipeline": {
        "shard_degree": 2,
        "tensor_degree": 2,
        "pipeline_degree": 2,
        "micro_batches": 2,
    },
}
ALWAYS_ON_MESHES = {
    ("shard × pipeline", MEMORY_LABEL): "gpt2",  # with tied weights
    ("replicate × pipeline", MEMORY_LABEL): "llama",
    ("tensor × pipeline", MEMORY_LABEL): "qwen3",  # with norms whose gradients are parts
    ("shard × tensor", Precision.BF16): "gpt2",  # with layers that are converted
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    loss: float
    parameter: float


TOLERANCES = {
    Precision.FP32: Tolerance(loss=1e-5, parameter=1e-4),
    Precision.BF16: Tolerance(loss=2e-3, parameter=1e-2),
    Precision.FP16: Tolerance(loss=5e-4, parameter=1e-2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table of strategies.

    ``environment`` is main, mesh, adapter or compiled for a job of its own, or xla with its own
    PyTorch.

    ``always`` are the models of ``models`` that ``make test`` trains.
    """

    label: str
    processes: int
    options: Mapping[str, Any]
    environment: str = "main"
    layer_count: int = 4
    models: tuple[str, ...] = field(default=MODELS)
    always: tuple[str, ...] = field(default=MODELS)

    @property
    def trained(self) -> tuple[str, ...]:
        return tuple(model for model in self.models if NIGHTLY or model in self.always)

    def case(self, model: str) -> Case:
        return Case(model=model, options=self.options, layer_count=self.layer_count)

    def reference(self, model: str) -> Case:
        options = {name: value for name, value in self.options.items() if name in REFERENCE_OPTIONS}
        return Case(model=model, options=options, layer_count=self.layer_count)

    @property
    def tolerance(self) -> Tolerance:
        return TOLERANCES[self.options.get("precision", Precision.FP32)]


def _rows() -> list[Row]:
    plain = [
        *(
            Row(label=name, processes=2, options=options)
            for name, options in FAMILIES.items()
            if name != "pipeline"
        ),
        *(
            Row(label=f"pipeline, {schedule}", processes=2, options=options)
            for schedule, options in SCHEDULES
        ),
    ]
    memory = [
        Row(label=f"{name}, {MEMORY_LABEL}", processes=2, options={**options, **MEMORY_OPTIONS})
        for name, options in FAMILIES.items()
    ]
    lower = [
        Row(
            label=f"{name}, {precision}",
            processes=2,
            options={**options, "precision": precision, "seed": LOWER_SEED},
            always=("gptj",)
            if (name, precision) in (("fsdp", Precision.FP16), ("pipeline", Precision.BF16))
            else (),
        )
        for precision in (Precision.BF16, Precision.FP16)
        for name, options in FAMILIES.items()
    ]
    planned = [
        Row(
            label=f"tensor, {label}",
            processes=2,
            models=("llama", "qwen3"),
            always=(always,),
            options={**FAMILIES["tensor"], **options, "gradient_clip_norm": 0.1},
        )
        for label, always, options in (
            ("by transformers' own plan", "qwen3", {}),
            ("by a plan of the suite", "qwen3", {"tensor_plan": CHOSEN_LAYERS}),
            (
                "with whole outputs and inputs, by a plan of the suite",
                "llama",
                {"tensor_plan": GATHERED_LAYERS},
            ),
        )
    ]
    experts = Row(
        label="tensor × data, experts by transformers' plan",
        processes=4,
        layer_count=2,
        models=("causal-lm/mixtral", "causal-lm/qwen3_moe", "causal-lm/gpt_oss"),
        always=("causal-lm/qwen3_moe",),
        options={**FAMILIES["tensor"], "gradient_clip_norm": 0.1, "gradient_accumulation_steps": 2},
    )
    composed = {"strategy": Strategy.MESH, "tensor_degree": 2, **MEMORY_OPTIONS}
    mesh = [
        Row(
            label="mesh, shard × tensor, experts by transformers' plan",
            processes=4,
            models=("causal-lm/mixtral", "causal-lm/qwen3_moe"),
            always=("causal-lm/mixtral",),
            options={**composed, "shard_degree": 2},
        ),
        Row(
            label="mesh, pipeline × tensor, by a plan of the suite",
            processes=4,
            models=("llama", "qwen3"),
            always=(),
            options={
                **composed,
                "pipeline_degree": 2,
                "micro_batches": 2,
                "tensor_plan": CHOSEN_LAYERS,
            },
        ),
    ]
    two = (*_in_turn(plain), *_in_turn(memory), *lower, *planned)
    divided = [*_four_processes(), experts, *mesh, *_meshes()]
    return [*two, *divided, *_adapters(), *_compiled(), *_xla()]


def _in_turn(rows: Iterable[Row]) -> list[Row]:
    """Each row always has one model, taken in turn, so that every model is trained in several of
    the rows.
    """
    return [replace(row, always=(MODELS[number % len(MODELS)],)) for number, row in enumerate(rows)]


def _four_processes() -> list[Row]:
    hybrid = {"strategy": Strategy.FSDP, "shard_scope": ShardScope.HYBRID, "instance_count": 2}
    tensor = {"strategy": Strategy.TENSOR, "tensor_degree": 4}
    deep = {"strategy": Strategy.PIPELINE, "pipeline_degree": 4, "micro_batches": 4}
    one_f_one_b = {**deep, "pipeline_schedule": PipelineSchedule.ONE_F_ONE_B}
    return [
        *(
            Row(label=name, processes=4, options=FAMILIES[name], always=())
            for name in ("ddp", "zero1", "fsdp")
        ),
        Row(label="fsdp, hybrid", processes=4, options=hybrid, always=("bert",)),
        Row(label="tensor", processes=4, options=tensor, always=()),
        Row(
            label="tensor × data",
            processes=4,
            options={**FAMILIES["tensor"], "gradient_clip_norm": 0.1},
            always=("albert",),
        ),
        Row(label="pipeline, gpipe", processes=4, options=deep, always=()),
        Row(label="pipeline, 1f1b", processes=4, options=one_f_one_b, always=()),
        *(
            Row(
                label=f"pipeline, {schedule} × data",
                processes=4,
                options={**options, "gradient_clip_norm": 0.1},
                always=("gpt2",) if schedule is PipelineSchedule.INTERLEAVED else (),
            )
            for schedule, options in SCHEDULES
        ),
    ]


def _meshes() -> list[Row]:
    """Compositions of degrees, in an environment of their own so that they are one more job."""
    mesh = {"strategy": Strategy.MESH}
    lower: dict[str, dict[str, Any]] = {
        precision: {"precision": precision, "seed": LOWER_SEED}
        for precision in (Precision.BF16, Precision.FP16)
    }
    variants: Mapping[str, Mapping[str, Any]] = {
        MEMORY_LABEL: MEMORY_OPTIONS,
        **lower,
        **{
            f"{precision}, {MEMORY_LABEL}": {**options, **MEMORY_OPTIONS}
            for precision, options in lower.items()
        },
        "interleaved": {"pipeline_schedule": PipelineSchedule.INTERLEAVED},
    }
    trained = [
        *((4, name, variant) for name in MESHES for variant in variants),
        *((8, name, MEMORY_LABEL) for name in MESHES_OF_EIGHT),
    ]
    degrees = {**MESHES, **MESHES_OF_EIGHT}
    return [
        Row(
            label=f"mesh, {name}, {variant}",
            processes=processes,
            environment="mesh",
            options={**mesh, **degrees[name], **variants[variant]},
            models=DECODERS,
            always=tuple(filter(None, [ALWAYS_ON_MESHES.get((name, variant))])),
        )
        for processes, name, variant in trained
        if variant != "interleaved" or "pipeline_degree" in degrees[name]
    ]


def _adapters() -> list[Row]:
    adapter = {"adapter": Adapter(rank=4), **ADAMW}
    compiled = {"compiler": Compiler.INDUCTOR}
    ways: tuple[tuple[str, str, Mapping[str, Any], str], ...] = (
        ("ddp", "", {}, "bert"),
        ("zero1", f", {MEMORY_LABEL}", MEMORY_OPTIONS, "llama"),
        ("fsdp", f", {MEMORY_LABEL}", MEMORY_OPTIONS, "gpt2"),
        ("fsdp", ", bf16", {"precision": Precision.BF16, "base_weights": BaseWeights.BF16}, ""),
        ("zero1", ", nf4", {"base_weights": BaseWeights.NF4}, "llama"),
        ("ddp", ", inductor", compiled, ""),
        ("fsdp", ", inductor", compiled, ""),
    )
    return [
        Row(
            label=f"{name}, adapter{more}",
            processes=2,
            environment="adapter",
            layer_count=2,
            models={", inductor": ("gpt2", "llama"), ", nf4": ("llama", "qwen3")}.get(
                more, ("gpt2", "llama", "bert")
            ),
            always=(always,) if always else (),
            options={**FAMILIES[name], **adapter, **options},
        )
        for name, more, options, always in ways
    ]


def _compiled() -> list[Row]:
    inductor = {"compiler": Compiler.INDUCTOR}
    single = {"strategy": Strategy.SINGLE}
    return [
        Row(
            label="single, inductor",
            processes=1,
            layer_count=1,
            always=("gpt2",),
            options={**single, **inductor},
        ),
        *(
            Row(
                label=f"{name}, inductor",
                processes=2,
                layer_count=layers,
                models=(model,),
                always=always,
                options={**FAMILIES[name], **inductor},
            )
            for name, model, layers, always in (
                ("ddp", "gpt2", 1, ()),
                ("zero1", "gpt2", 1, ()),  # compiled as ddp's
                ("fsdp", "gptj", 1, ("gptj",)),
                ("tensor", "albert", 1, ()),
                ("pipeline", "bert", 2, ()),
            )
        ),
        *(
            Row(
                label=f"mesh, {name}, inductor",
                processes=4,
                environment="compiled",
                layer_count=2,
                models=("llama",),
                always=(),
                options={"strategy": Strategy.MESH, **MESHES[name], **inductor},
            )
            for name in ("shard × pipeline", "shard × tensor")
        ),
    ]


def _xla() -> list[Row]:
    xla = {"compiler": Compiler.XLA, "gradient_clip_norm": 0.1}
    single = {"strategy": Strategy.SINGLE, **xla}
    ddp = {"strategy": Strategy.DDP, **xla}
    return [
        Row(
            label="single, xla",
            environment="xla",
            processes=1,
            layer_count=1,
            always=(),
            options=single,
        ),
        Row(
            label="ddp, xla",
            environment="xla",
            processes=2,
            layer_count=1,
            always=("albert",),
            options=ddp,
        ),
    ]


ROWS = _rows()
