"""An adapter trains as peft trains it with a plain loop, and is saved as peft reads it."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from torch.distributed.checkpoint.filesystem import FileSystemReader

from tests.training.checkpointed import Attempt, train_attempts
from tests.training.strategy_cases import WORKLOADS, Case, blueprint_of, global_batch, workload
from tests.training.strategy_trial import make_setup
from traindyno.core.run.settings import Adapter, LearningRate
from traindyno.core.suite.choices import BaseWeights, OptimizerName, Precision, Task
from training.errors import WorkloadError
from training.memory.estimate import estimate_memory
from training.models.adapter import head_names
from training.models.adapter_files import check_base, read_adapter
from training.models.flops import measure_size
from training.models.model import build_model, empty_model
from training.models.model_check import check_model
from training.models.model_config import AUTO_CLASSES
from training.models.objective import Objective
from training.models.optimizer import build_optimizer
from training.process.job import find_job
from training.process.process_group import Topology
from training.run.saving_adapters import AdaptedForm, save_adapted
from training.strategies import TrainingStrategy, build_strategy

pytestmark = pytest.mark.usefixtures("of_one_thread")

STEPS = 100
BATCHES = 4
ADAPTER = Adapter(rank=4, alpha=8.0)
FAMILIES = ("gpt2", "llama", "qwen3", "bert", "albert", "causal-lm/mixtral")
TRAINED = {
    "optimizer": OptimizerName.ADAMW,
    "learning_rate": LearningRate(base=3e-3),
    "weight_decay": 0.0,
}
OF_BF16 = {"base_weights": BaseWeights.BF16, "precision": Precision.BF16}


def adapted(model: str, **options: Any) -> Case:
    return Case(model=model, options={**TRAINED, "adapter": ADAPTER, **options}, layer_count=2)


def placed(case: Case) -> TrainingStrategy:
    strategy = build_strategy(make_setup(case, Topology()))
    strategy.place(blueprint_of(case))
    return strategy


def losses_of(case: Case, strategy: TrainingStrategy, steps: int) -> list[float]:
    settings = case.settings(1)
    optimizer = strategy.build_optimizer(
        lambda parameters: build_optimizer(parameters, settings, settings.rate.base)
    )
    strategy.set_training(True)
    losses = []
    for step in range(steps):
        loss = strategy.forward_backward([global_batch(case.model, step % BATCHES)])
        assert loss is not None
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    return losses


def by_peft(case: Case, own: dict[str, torch.Tensor]) -> nn.Module:
    """peft's model of the case's base, with the initial values of ``own`` [...]."""
    plain = Case(model=case.model, options=TRAINED, layer_count=case.layer_count)
    base = blueprint_of(plain).materialise(torch.device("cpu"))
    task = WORKLOADS[case.model][0]
    is_classified = task is Task.SEQUENCE_CLASSIFICATION
    heads = head_names(base)
    if case.options.get("base_weights") is BaseWeights.BF16:
        for name, parameter in base.named_parameters():
            if not name.startswith(tuple(heads)):
                parameter.data = parameter.data.bfloat16()
    config = LoraConfig(
        r=ADAPTER.rank,
        lora_alpha=ADAPTER.scale,
        # peft's own word adapts Mixtral's routers.
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]
        if "mixtral" in case.model
        else "all-linear",
        task_type="SEQ_CLS" if is_classified else None,
        modules_to_save=heads or None,
    )
    model: nn.Module = get_peft_model(base, config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.copy_(own[name.removeprefix("base_model.model.")])
    return model


@pytest.mark.parametrize(
    ("options", "tolerance"),
    [({}, 1e-5), pytest.param(OF_BF16, 2e-3, marks=pytest.mark.nightly)],
    ids=["fp32", "bf16"],
)
@pytest.mark.parametrize("model", FAMILIES)
def test_a_hundred_steps_equal_peft_with_a_plain_loop(
    model: str, options: dict[str, Any], tolerance: float
) -> None:
    case = adapted(model, **options)
    strategy = placed(case)
    own = {name: tensor.detach().clone() for name, tensor in strategy.named_tensors().items()}
    theirs = by_peft(case, own)
    autocast = torch.autocast("cpu", torch.bfloat16) if options else None
    objective = Objective(theirs, WORKLOADS[model][0], autocast).train()  # type: ignore[arg-type]
    trained = [parameter for parameter in theirs.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=3e-3, weight_decay=0.0, fused=True)
    expected = []
    for step in range(STEPS):
        loss = objective(**global_batch(model, step % BATCHES))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        expected.append(float(loss.detach()))
    losses = losses_of(case, strategy, STEPS)
    assert max(abs(a - b) for a, b in zip(losses, expected, strict=True)) <= tolerance
    assert losses[0] - losses[-1] > 1e-2
    mine = sum(
        tensor.numel() for tensor in strategy.named_tensors().values() if tensor.requires_grad
    )
    assert mine == sum(parameter.numel() for parameter in trained)


def test_the_saved_model_answers_as_the_trained_one_merged_or_not(tmp_path: Path) -> None:
    for model in ("llama", "gpt2", "bert", "albert"):
        case = adapted(model, learning_rate=LearningRate(base=0.05))
        strategy = placed(case)
        losses_of(case, strategy, 3)
        blueprint = blueprint_of(case)
        task, _ = WORKLOADS[model]
        plain = Case(model=model, options=TRAINED, layer_count=case.layer_count)
        form = AdaptedForm(
            config=blueprint.adapter, base_name="somewhere/base", base="12", is_merged=True
        )
        folder = tmp_path / model
        empty = empty_model(task, deepcopy(blueprint.config))
        save_adapted(form, strategy.stream_state_dict(), empty, None, folder)
        inputs = {
            name: tensor for name, tensor in global_batch(model, 0).items() if name != "labels"
        }
        strategy.set_training(False)
        trained: Any = strategy._objective.model  # type: ignore[attr-defined]
        base = blueprint_of(plain).materialise(torch.device("cpu")).eval()
        merged = AUTO_CLASSES[task].from_pretrained(folder).eval()
        beside = PeftModel.from_pretrained(base, str(folder / "adapter")).eval()
        with torch.no_grad():
            expected = trained(**inputs).logits
            assert (merged(**inputs).logits - expected).abs().max() < 1e-5
            assert (beside(**inputs).logits - expected).abs().max() < 1e-5
            assert (
                expected
                - blueprint_of(plain).materialise(torch.device("cpu")).eval()(**inputs).logits
            ).abs().max() > 1e-3


def test_training_goes_on_from_a_saved_adapter(tmp_path: Path) -> None:
    case = adapted("qwen3")
    strategy = placed(case)
    losses_of(case, strategy, 5)
    blueprint = blueprint_of(case)
    task, _ = WORKLOADS[case.model]
    form = AdaptedForm(config=blueprint.adapter, base_name=None, base=None, is_merged=False)
    empty = empty_model(task, deepcopy(blueprint.config))
    save_adapted(form, strategy.stream_state_dict(), empty, None, tmp_path)
    again = build_model(
        workload(case), case.settings(1), None, model_path=None, adapter_path=tmp_path
    ).materialise(torch.device("cpu"))
    held = again.state_dict()
    for name, tensor in strategy.named_tensors().items():
        assert torch.equal(held[name], tensor), name


def test_an_adapter_of_an_expression_goes_on_with_the_dropout_of_the_suite(tmp_path: Path) -> None:
    case = adapted("llama")
    plain = Case(model="llama", options=TRAINED, layer_count=2)
    targets = r".*\.(q_proj|v_proj)"
    theirs = LoraConfig(
        r=4, lora_alpha=8, lora_dropout=0.3, target_modules=targets, init_lora_weights=False
    )
    first = get_peft_model(blueprint_of(plain).materialise(torch.device("cpu")), theirs).eval()
    first.save_pretrained(str(tmp_path / "first"))
    settings = replace(case.settings(1), adapter=replace(ADAPTER, dropout=0.1))
    blueprint = build_model(
        workload(case), settings, None, model_path=None, adapter_path=tmp_path / "first"
    )
    assert blueprint.adapter.lora_dropout == 0.1
    form = AdaptedForm(config=blueprint.adapter, base_name=None, base=None, is_merged=False)
    empty = empty_model(Task.CAUSAL_LM, deepcopy(blueprint.config))
    held = blueprint.materialise(torch.device("cpu")).state_dict()
    save_adapted(form, iter(held.items()), empty, None, tmp_path / "second")
    base = blueprint_of(plain).materialise(torch.device("cpu"))
    second = PeftModel.from_pretrained(base, str(tmp_path / "second")).eval()
    tokens = global_batch("llama", 0)["input_ids"]
    with torch.no_grad():
        assert torch.equal(second(tokens).logits, first(tokens).logits)


def test_a_stopped_run_goes_on_bit_by_bit_from_the_adapter_alone(
    tmp_path: Path,
) -> None:
    settings = {"strategy": "single", "adapter": {"rank": 2, "dropout": 0.1}}
    folder = str(tmp_path / "stopped")
    whole, _, resumed = train_attempts(
        [
            Attempt(settings=settings, checkpoints=None),
            Attempt(settings=settings, checkpoints=folder, stops_after=5),
            Attempt(settings=settings, checkpoints=folder),
        ]
    )
    assert {**resumed.losses} == {step: whole.losses[step] for step in resumed.losses}
    assert min(resumed.losses) > 1
    assert all(
        torch.equal(whole.parameters[name], parameter)
        for name, parameter in resumed.parameters.items()
    )
    names = {
        name
        for path in Path(folder).glob("slot-*")
        for name in FileSystemReader(path).read_metadata().state_dict_metadata
    }
    assert names
    assert all(".lora_" in name for name in names)


@pytest.mark.parametrize(
    ("model", "asked", "told"),
    [
        ("llama", Adapter(rank=4, targets=("q_prj",)), "such as q_proj"),
        ("llama", Adapter(rank=33), "is 32 × 32; expected a rank of at most 32"),
        ("causal-lm/mamba", Adapter(rank=1), "peft adds no adapter to this mamba"),
        ("masked-lm/fnet", Adapter(rank=1), "fnet.pooler.dense"),
    ],
)
def test_an_adapter_unfit_for_the_model_is_refused(model: str, asked: Adapter, told: str) -> None:
    case = Case(model=model, layer_count=None)
    problems = list(check_model(workload(case), [], adapters=[asked], model_path=None))
    assert [problem.path for problem in problems] == ["matrix.adapter"]
    assert told in problems[0].message


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"use_dora": True}, "expected plain LoRA"),
        ({"alora_invocation_tokens": [1]}, "expected plain LoRA"),
        ({"init_lora_weights": "pissa"}, "changes the base's weights too"),
        ({"r": 8}, "expected rank: 8"),
        ({"modules_to_save": ["embed_tokens", "lm_head"]}, "embed_tokens, lm_head too"),
        ({"modules_to_save": ["norm"]}, "trains norm too"),
    ],
)
def test_a_folder_with_another_kind_of_adapter_is_refused(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    case = adapted("llama")
    blueprint = blueprint_of(case)
    LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj"]).save_pretrained(str(tmp_path))
    file = tmp_path / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(WorkloadError, match=told):
        read_adapter(tmp_path, blueprint.model, ADAPTER, Task.CAUSAL_LM)


def test_an_adapter_of_another_base_is_refused(tmp_path: Path) -> None:
    (tmp_path / "traindyno-adapter.json").write_text('{"base": "12"}')
    check_base(tmp_path, "12")
    with pytest.raises(WorkloadError, match=r"workload\.channels\.base"):
        check_base(tmp_path, "13")


def test_the_base_of_a_folder_is_its_channel_or_its_configurations_base(
    tmp_path: Path,
) -> None:
    file = tmp_path / "adapter_config.json"
    asked = workload(Case(model="llama", folder=str(tmp_path)))
    file.write_text('{"base_model_name_or_path": "s3://bucket/base"}')
    with pytest.raises(WorkloadError, match=r"workload\.channels\.base"):
        find_job(asked, {})
    job = find_job(asked, {"SM_CHANNEL_BASE": "/data/base"})
    assert (job.model_path, job.adapter) == ("/data/base", tmp_path)
    file.write_text('{"base_model_name_or_path": "someone/base"}')
    assert find_job(asked, {}).model_path == "someone/base"


def test_frozen_weights_have_no_gradients_among_the_flops() -> None:
    whole, adapter = (
        blueprint_of(case) for case in (Case(model="llama", layer_count=2), adapted("llama"))
    )
    size = measure_size(Task.CAUSAL_LM, whole.config, 12)
    own = measure_size(Task.CAUSAL_LM, whole.config, 12, adapter.adapter)
    assert size.flops_per_token is not None
    assert own.flops_per_token is not None
    # Forward and the gradients of activations are two of three parts; the adapter adds its own.
    assert 0.6 < own.flops_per_token / size.flops_per_token < 0.95
    matrices = sum(32 * 4 + 4 * out for out in (32, 16, 16, 32)) + 3 * 4 * (32 + 64)
    assert own.trained == 2 * matrices
    assert own.parameters == size.parameters + own.trained
    assert size.trained is None


def test_the_memory_of_an_adapter_is_estimated_without_state_of_its_base() -> None:
    case = adapted("llama")
    asked = workload(case)
    settings = case.settings(1)
    estimated = estimate_memory(asked, settings)
    whole = estimate_memory(asked, replace(settings, adapter=None))
    matrices = sum(
        parameter.numel()
        for name, parameter in blueprint_of(case).model.named_parameters()
        if parameter.requires_grad
    )
    # Two states of AdamW; storages are of whole 512 bytes, and each has a counter of its own.
    assert 1 <= estimated.optimizer_bytes / (8 * matrices) < 1.7
    assert whole.peak_bytes - estimated.peak_bytes > 1.5 * whole.parameter_bytes
