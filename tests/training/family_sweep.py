"""Trains a small model of a family of transformers, and compares it with what transformers does by itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from transformers import AttentionMaskInterface, PreTrainedConfig, PreTrainedModel, masking_utils

from tests.training.strategy_cases import (
    STEP_COUNT,
    VOCABULARY_SIZE,
    WORKLOADS,
    Case,
    blueprint_of,
    global_batch,
    workload,
)
from tests.training.strategy_trial import make_setup, train
from traindyno.core.suite.choices import Task
from training.errors import RunError
from training.models import masks
from training.models.flops import NOT_COUNTED, measure_size
from training.models.masks import set_document_masking
from training.models.model import AUTO_CLASSES
from training.models.model_check import check_model
from training.models.objective import task_loss
from training.models.optimizer import build_optimizer
from training.models.pipeline_stages import cut
from training.models.replacement import replaced
from training.process.topology import Topology
from training.run.document_check import refuse_unless_documents_are_apart
from training.strategies import build_strategy

TOLERANCE = 1e-5
MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """``packed`` and ``padded`` are "equal", or what differs; None where ``refused`` or ``unknown`` says why.

    ``masks_documents`` is None for a task without document masking. ``stages``: "equal" if two stages of a pipeline
    have the logits of the whole model, or what differs, or "refused".
    """

    packed: str | None = None
    padded: str | None = None
    stages: str | None = None
    masks_documents: bool | None = None
    flops_are_known: bool = False
    refused: str | None = None
    unknown: str | None = None


class NotComparable(Exception):
    """Transformers' own model does not run."""


def compare(name: str) -> Compared:
    """``name`` is a task and a family: ``causal-lm/mixtral``."""
    with one_thread():
        return _compared(name)


@contextmanager
def one_thread() -> Iterator[None]:
    """Small operations are much faster so, on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _compared(name: str) -> Compared:
    case = Case(model=name, layer_count=None)
    try:
        asked = workload(case)
    except NOT_COUNTED as error:
        return Compared(unknown=f"no small configuration: {_line(error)}")
    problems = list(check_model(asked, [], model_path=None))
    if problems:
        return Compared(refused="; ".join(map(str, problems)))
    try:
        blueprint = blueprint_of(case)
    except RunError as error:
        return Compared(refused=" ".join(str(error).split())[:MOST_CHARACTERS])
    assert asked.sequence_length is not None
    size = measure_size(asked.task, blueprint.config, asked.sequence_length)
    ours = blueprint.materialise(torch.device("cpu"))
    try:
        packed, padded = (_compare(replace(case, is_padded=each), ours, blueprint.config) for each in (False, True))
    except NotComparable as error:
        return Compared(unknown=str(error))
    return Compared(
        packed=packed,
        padded=padded,
        stages=_stages(case),
        masks_documents=_masks_documents(name) if asked.task is Task.CAUSAL_LM else None,
        flops_are_known=size.flops_per_token is not None,
    )


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
                hidden = stage.eval()(hidden, tokens=inputs["input_ids"], attention_mask=inputs.get("attention_mask"))
        difference = max(difference, float((hidden - _logits(model, inputs)).abs().max()))
    held = {id(parameter) for stage in stages for parameter in stage.parameters()}
    if any(id(parameter) not in held for parameter in model.parameters()):
        return "weights are on no stage"
    return "equal" if difference <= TOLERANCE else f"logits differ by {difference:.2g}"


def _compare(case: Case, ours: PreTrainedModel, config: PreTrainedConfig) -> str:
    batch = global_batch(case.model, 0, is_padded=case.is_padded)
    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
    with transformers_own_masks():
        theirs: PreTrainedModel = AUTO_CLASSES[WORKLOADS[case.model][0]].from_config(deepcopy(config))
        theirs.load_state_dict(ours.state_dict())
        try:
            expected = _logits(theirs, inputs)
            losses = _plain_losses(case, theirs)
        except NOT_COUNTED as error:
            raise NotComparable(f"transformers' own model fails: {_line(error)}") from error
    if not expected.isfinite().all():
        raise NotComparable("transformers' own logits are not finite")
    difference = float((_logits(ours, inputs) - expected).abs().max())
    if difference > TOLERANCE:
        return f"logits differ by {difference:.2g}"
    trained = train(case, Topology()).losses
    difference = max(abs(mine - other) for mine, other in zip(trained, losses, strict=True))
    return "equal" if difference <= TOLERANCE else f"losses of {STEP_COUNT} steps differ by {difference:.2g}"


def _logits(model: PreTrainedModel, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Returns [B, L, V]."""
    _seed()
    model.eval()
    with torch.no_grad():
        logits: torch.Tensor = model(**inputs).logits
    return logits


def _plain_losses(case: Case, model: PreTrainedModel) -> list[float]:
    """The losses of the steps that ``train`` makes."""
    settings = case.settings(1)
    optimizer = build_optimizer(model.parameters(), settings, settings.learning_rate.base)
    model.train()
    _seed()
    losses = []
    for step in range(STEP_COUNT):
        batch = global_batch(case.model, step, is_padded=case.is_padded)
        labels = batch.pop("labels")
        output: Any = model(**batch)
        loss = task_loss(WORKLOADS[case.model][0], output.logits, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return losses


def _seed() -> None:
    torch.manual_seed(0)
    np.random.seed(0)  # BigBird draws its random blocks from it


@contextmanager
def transformers_own_masks() -> Iterator[None]:
    ours: Any = AttentionMaskInterface._global_mapping["sdpa"]
    AttentionMaskInterface.register("sdpa", masking_utils.sdpa_mask)
    try:
        with replaced(masking_utils, "find_packed_sequence_indices", masks._separate_documents):
            yield
    finally:
        AttentionMaskInterface.register("sdpa", ours)


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:MOST_CHARACTERS]
