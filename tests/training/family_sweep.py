"""Trains a small model of a family of transformers, and compares it with what transformers does by
itself.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AttentionMaskInterface,
    AutoConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    masking_utils,
)

from tests.training.strategy_cases import (
    MASK_TOKEN,
    STEP_COUNT,
    VOCABULARY_SIZE,
    WORKLOADS,
    Case,
    blueprint_of,
    global_batch,
    workload,
)
from tests.training.strategy_trial import make_setup, train
from tests.training.word_tokenizer import word_tokenizer
from traindyno.core.run.settings import Adapter
from traindyno.core.suite.choices import Task
from training.errors import RunError, WorkloadError
from training.models.adapter_check import check_adapter
from training.models.blueprint import Blueprint, replaced
from training.models.config_numbers import NOT_BUILT
from training.models.flops import NOT_COUNTED, measure_size
from training.models.model import _separate_documents, build_model, set_document_masking
from training.models.model_check import check_model
from training.models.model_config import AUTO_CLASSES, _set_dropout
from training.models.objective import router_loss_factor, task_loss
from training.models.optimizer import build_optimizer, mark_decayed
from training.models.pipeline_stages import cut
from training.process.process_group import Topology
from training.run.document_check import refuse_unless_documents_are_apart
from training.strategies import build_strategy

TOLERANCE = 1e-5
OWN = "transformers'"
OWN_WITH_ROUTERS = "transformers', with the routers'"
ROUTER_FACTORS = ("router_aux_loss_coef", "aux_loss_coef")
MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The comparison of a family with transformers: "equal" or the difference; None where
    ``refused`` or ``unknown`` says why.

    ``loss`` says whether the losses are those that transformers computes from labels. ``adapter``:
    "yes" if LoRA beside all linear layers trains, or why it is refused. ``masks_documents`` is None
    for a task without document masking. ``stages``: "equal" if two stages of a pipeline have the
    logits of the whole model, or what differs, or "refused".
    """

    packed: str | None = None
    padded: str | None = None
    loss: str | None = None
    stages: str | None = None
    masks_documents: bool | None = None
    adapter: str | None = None
    flops_are_known: bool = False
    refused: str | None = None
    unknown: str | None = None


class NotComparable(Exception):
    """Transformers' own model does not run."""


def compare(name: str) -> Compared:
    """Compares a task and a family, named ``causal-lm/mixtral``.

    The model is read from a folder with its tokenizer.
    """
    compared = Compared()
    for has_routers in (True, False):  # transformers' own routers' loss fails for some families
        with one_thread(), TemporaryDirectory() as folder:
            compared = _compared(name, Path(folder), has_routers=has_routers)
        if not compared.unknown:
            break
    return compared


def adapter_of(name: str) -> str:
    """Whether the family takes an adapter of rank 1 beside all of its linear layers."""
    task, values = WORKLOADS[name]
    problems = check_adapter(task, AutoConfig.for_model(**values), Adapter(rank=1))
    message = " ".join("; ".join(problem.message for problem in problems).split())
    return f"refused: {message.partition('; expected')[0]}"[:MOST_CHARACTERS] if message else "yes"


@contextmanager
def one_thread() -> Iterator[None]:
    """Small operations are much faster so, on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _compared(name: str, folder: Path, *, has_routers: bool) -> Compared:
    case = Case(model=name, layer_count=None)
    try:
        asked = workload(case)
    except NOT_COUNTED as error:
        return Compared(unknown=f"no small configuration: {_line(error)}")
    problems = list(check_model(asked, [], model_path=None))
    if problems:
        return Compared(refused="; ".join(map(str, problems)))
    try:
        build_model(asked, case.settings(1), small_tokenizer(), model_path=None)
    except RunError as error:
        return Compared(refused=" ".join(str(error).split())[:MOST_CHARACTERS])
    task, values = WORKLOADS[name]
    save_small(task, values, folder, has_routers=has_routers)
    case = replace(case, folder=str(folder))
    asked = workload(case)
    problems = list(check_model(asked, [], model_path=str(folder), weights_path=str(folder)))
    if problems:
        return Compared(refused="; ".join(map(str, problems)))
    blueprint = blueprint_of(case)
    assert asked.sequence_length is not None
    size = measure_size(asked.task, blueprint.config, asked.sequence_length)
    ours = blueprint.materialise(torch.device("cpu"))
    try:
        results = [
            _compare(replace(case, is_padded=is_padded), ours) for is_padded in (False, True)
        ]
    except NotComparable as error:
        return Compared(unknown=str(error))
    (packed, loss), (padded, _) = results
    return Compared(
        packed=packed,
        padded=padded,
        loss=loss,
        stages=_stages(replace(case, folder=None)),  # a pipeline can't have the routers' loss
        masks_documents=_masks_documents(name) if asked.task is Task.CAUSAL_LM else None,
        adapter=adapter_of(name),
        flops_are_known=size.flops_per_token is not None,
    )


def small_model(name: str, **options: Any) -> Blueprint:
    """Skips the test where transformers or the job builds none."""
    try:
        return blueprint_of(Case(model=name, options=options, layer_count=None))
    except (*NOT_BUILT, WorkloadError):
        pytest.skip("transformers builds no small model of it")


def small_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each of the words 0, 1, 2 …; the special ones are those that rows are made
    with.
    """
    special = {
        "pad_token": "0",
        "bos_token": "1",
        "eos_token": "2",
        "unk_token": "3",
        "mask_token": str(MASK_TOKEN),
    }
    return word_tokenizer(map(str, range(VOCABULARY_SIZE)), **special)


def save_small(task: Task, values: Mapping[str, Any], folder: Path, *, has_routers: bool) -> None:
    """A model, its whole configuration and its tokenizer, as the Hub has them.

    ``has_routers``: with their loss.
    """
    config: PreTrainedConfig = AutoConfig.for_model(**values)
    text = config.get_text_config()
    text.pad_token_id = 0
    text.bos_token_id = 1
    text.eos_token_id = 2
    if hasattr(text, "output_router_logits"):
        text.output_router_logits = has_routers
    for name in ROUTER_FACTORS:
        if hasattr(text, name):
            setattr(text, name, 0.5)
    torch.manual_seed(1)
    AUTO_CLASSES[task].from_config(config).save_pretrained(folder)
    config.save_pretrained(folder)
    small_tokenizer().save_pretrained(folder)


def _masks_documents(name: str) -> bool:
    case = Case(model=name, layer_count=None, options={"document_masking": True})
    setup = make_setup(case, Topology())
    strategy = build_strategy(setup)
    strategy.place(blueprint_of(case))
    try:
        refuse_unless_documents_are_apart(setup, strategy, VOCABULARY_SIZE)
    except RunError:
        return False
    finally:
        set_document_masking(False)
    return True


def _stages(case: Case) -> str:
    blueprint = blueprint_of(case)
    try:
        stages = cut(blueprint.model, 2, workload(case).task, None)
    except RunError:
        return "refused"
    model = blueprint.materialise(torch.device("cpu")).eval()
    difference = 0.0
    for is_padded in (False, True):
        batch = global_batch(case.model, 0, is_padded=is_padded)
        inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
        hidden = inputs["input_ids"]
        with torch.no_grad():
            _seed()
            for stage in stages:
                hidden = stage.eval()(
                    hidden, tokens=inputs["input_ids"], attention_mask=inputs.get("attention_mask")
                )
        difference = max(difference, float((hidden - _logits(model, inputs)).abs().max()))
    held = {id(parameter) for stage in stages for parameter in stage.parameters()}
    if any(id(parameter) not in held for parameter in model.parameters()):
        return "weights are on no stage"
    return "equal" if difference <= TOLERANCE else f"logits differ by {difference:.2g}"


def _compare(case: Case, ours: PreTrainedModel) -> tuple[str, str]:
    """What differs, and whose loss it is."""
    batch = global_batch(case.model, 0, is_padded=case.is_padded)
    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
    with transformers_own_masks():
        theirs = _transformers_own(case)
        try:
            expected = _logits(theirs, inputs)
            losses, whose = _plain_losses(case, theirs)
        except NOT_COUNTED as error:
            raise NotComparable(f"transformers' own model fails: {_line(error)}") from error
    if not expected.isfinite().all():
        raise NotComparable("transformers' own logits are not finite")
    difference = float((_logits(ours, inputs) - expected).abs().max())
    if difference > TOLERANCE:
        return f"logits differ by {difference:.2g}", whose
    trained = train(case, Topology()).losses
    difference = max(abs(mine - other) for mine, other in zip(trained, losses, strict=True))
    return (
        "equal"
        if difference <= TOLERANCE
        else f"losses of {STEP_COUNT} steps differ by {difference:.2g}",
        whose,
    )


def _transformers_own(case: Case) -> PreTrainedModel:
    """Without dropout, as the case is trained."""
    config = AutoConfig.from_pretrained(str(case.folder))
    for part in (config, config.get_text_config()):
        _set_dropout(part, 0.0)
        part.use_cache = False
    model: PreTrainedModel = AUTO_CLASSES[WORKLOADS[case.model][0]].from_pretrained(
        case.folder, config=config
    )
    return model


def _logits(model: PreTrainedModel, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Returns [B, L, V]."""
    _seed()
    model.eval()
    with torch.no_grad():
        logits: torch.Tensor = model(**inputs).logits
    return logits


def _plain_losses(case: Case, model: PreTrainedModel) -> tuple[list[float], str]:
    """The losses of the steps that ``train`` makes: transformers' own, or the task's where
    transformers has another.
    """
    whose = _whose_loss(case, model)
    settings = case.settings(1)
    mark_decayed(model)
    optimizer = build_optimizer(model.parameters(), settings, settings.learning_rate.base)
    model.train()
    _seed()
    losses = []
    for step in range(STEP_COUNT):
        batch = global_batch(case.model, step, is_padded=case.is_padded)
        if whose in (OWN, OWN_WITH_ROUTERS):
            loss = model(**batch).loss
        else:
            labels = batch.pop("labels")
            loss = task_loss(WORKLOADS[case.model][0], model(**batch).logits, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return losses, whose


def _whose_loss(case: Case, model: PreTrainedModel) -> str:
    """Compares transformers' loss of the first batch with the task's."""
    batch = global_batch(case.model, 0, is_padded=case.is_padded)
    labels = batch.pop("labels")
    task = WORKLOADS[case.model][0]
    model.eval()
    with torch.no_grad():
        _seed()
        output: Any = model(**batch)
        _seed()
        try:
            of_labels: Any = model(**batch, labels=labels)
        except NOT_COUNTED:
            return "the task's: transformers' own fails for text alone"
    theirs = float(of_labels.loss)
    routers = (
        router_loss_factor(model) * float(output.aux_loss) if router_loss_factor(model) else 0.0
    )
    if abs(float(task_loss(task, output.logits, labels)) + routers - theirs) <= TOLERANCE:
        return OWN_WITH_ROUTERS if routers else OWN
    if abs(float(task_loss(Task.MASKED_LM, output.logits, labels)) - theirs) <= TOLERANCE:
        return "the task's: transformers does not shift the labels"
    if not torch.equal(of_labels.logits, output.logits):
        return "the task's: transformers makes other inputs from the labels"
    return "the task's: transformers adds another loss"


def _seed() -> None:
    torch.manual_seed(0)
    np.random.seed(0)  # BigBird draws its random blocks from it


@contextmanager
def transformers_own_masks() -> Iterator[None]:
    ours: Any = AttentionMaskInterface._global_mapping["sdpa"]
    AttentionMaskInterface.register("sdpa", masking_utils.sdpa_mask)
    try:
        with replaced(masking_utils, "find_packed_sequence_indices", _separate_documents):
            yield
    finally:
        AttentionMaskInterface.register("sdpa", ours)


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:MOST_CHARACTERS]
