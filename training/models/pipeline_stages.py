"""The stages of a pipeline, each of which has some of a model's blocks.

The first stage has the embeddings, the last one the head.
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from copy import copy
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from traindyno.core.suite.choices import Task
from training.errors import WorkloadError
from training.models.objective import router_loss_factor
from training.models.pipeline_anatomy import (
    NOT_CALLED,
    TRIED_TOKENS,
    Anatomy,
    dissect,
    one_line,
    refusal,
    with_replaced,
    without_values,
)


class Stage(nn.Module):
    """Every stage of a replica gets the batch's tokens and mask, [B, L]; hidden states [B, L, D]
    are sent from stage to stage.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        is_first: bool,
        is_last: bool,
        reads_tokens: bool,
        autocast: torch.autocast | None,
    ) -> None:
        """Makes a stage.

        Args:
            model: The blocks of the stage in their model, which has a head in the last stage.
            is_first: Whether the stage gets tokens.
            is_last: Whether it gives logits.
            reads_tokens: Whether its head looks for padding in the tokens.
            autocast: The context of its forward pass, if its precision needs one.
        """
        super().__init__()
        self.model = model
        self._is_first = is_first
        self._is_last = is_last
        self._reads_tokens = reads_tokens
        self._autocast = autocast

    def forward(
        self,
        received: torch.Tensor,
        *,
        tokens: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Runs the stage.

        Args:
            received: [B, L] or [B, L, D], tokens in the first stage, otherwise hidden states.
            tokens: [B, L]
            attention_mask: [B, L]
            position_ids: [B, L]

        Returns:
            Hidden states [B, L, D] or, from the last stage, logits: [B, L, V] or [B, C].
        """
        inputs = {} if self._is_first else {"inputs_embeds": received}
        if position_ids is not None:
            inputs["position_ids"] = position_ids
        if self._is_first or self._reads_tokens:
            inputs["input_ids"] = tokens
        with self._autocast or nullcontext():
            output = self.model(**inputs, attention_mask=attention_mask)
        result: torch.Tensor = output.logits if self._is_last else output.last_hidden_state
        return result


def cut(
    model: PreTrainedModel, stage_count: int, task: Task, autocast: torch.autocast | None
) -> list[Stage]:
    """Returns all stages, which share the model's modules and parameters; a rank keeps its own."""
    if stage_count > 1 and router_loss_factor(model):
        raise refusal(
            model,
            (
                "its loss has the routers' of all blocks (output_router_logits), and a stage has "
                "only some of them"
            ),
        )
    model = _with_a_block_for_each_call(model)
    anatomy = dissect(model)
    if len(anatomy.blocks) < stage_count:
        raise WorkloadError(
            f"strategy pipeline asks for {stage_count} stages, but this {model.config.model_type} "
            f"has {len(anatomy.blocks)} blocks; expected at least one block for each stage"
        )
    bounds = [0, *accumulate(divide(*_costs(model, anatomy), stage_count))]
    reads_tokens = task is Task.SEQUENCE_CLASSIFICATION
    stages = [
        _stage(model, anatomy, range(*between), reads_tokens, autocast)
        for between in pairwise(bounds)
    ]
    if stage_count > 1:
        _refuse_unless_the_head_takes_hidden_states(model, anatomy, reads_tokens)
    return stages


def divide(blocks: Sequence[float], head: float, stage_count: int) -> list[int]:
    """Takes the cost of each block, and of the head, which the last stage has.

    Returns each stage's number of blocks.

    Each has one at least, and the dearest stage costs least. Among equal divisions, early stages
    have more.
    """
    count = len(blocks)
    costs = [0.0, *accumulate(blocks)]
    # If the stages begin at a block, the least cost that the dearest stage can have, with the
    # numbers of blocks of the stages.
    best = {first: (costs[count] - costs[first] + head, [count - first]) for first in range(count)}
    for stages in range(2, stage_count + 1):
        best = {
            first: min(
                (
                    (max(costs[end] - costs[first], best[end][0]), [end - first, *best[end][1]])
                    for end in range(count - stages + 1, first, -1)
                ),
                key=itemgetter(0),
            )
            for first in range(count - stages + 1)
        }
    return best[0][1]


def _costs(model: PreTrainedModel, anatomy: Anatomy) -> tuple[list[float], float]:
    """A token's multiplications: one for each weight of a block and of the head.

    An embedding is looked up.
    """
    inner = {id(parameter) for parameter in model.base_model.parameters()}
    head = {
        id(parameter): parameter for parameter in model.parameters() if id(parameter) not in inner
    }
    output: nn.Module | None = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    if output is not None:  # it may be tied to the embedding
        head |= {id(parameter): parameter for parameter in output.parameters()}
    return [_weights(block.parameters()) for block in anatomy.blocks], _weights(head.values())


def _weights(parameters: Iterable[nn.Parameter]) -> float:
    return float(sum(parameter.numel() for parameter in parameters))


def _stage(
    model: PreTrainedModel,
    anatomy: Anatomy,
    numbers: range,
    reads_tokens: bool,
    autocast: torch.autocast | None,
) -> Stage:
    is_first = numbers.start == 0
    is_last = numbers.stop == len(anatomy.blocks)
    stand_ins = anatomy.passed(
        number for number in range(len(anatomy.blocks)) if number not in numbers
    )
    if not is_first:
        stand_ins |= anatomy.before
    if not is_last:
        stand_ins |= anatomy.after
    base: Any = with_replaced(model.base_model, stand_ins)
    if is_last and not is_first:
        base.register_forward_pre_hook(_without_tokens, with_kwargs=True)
    whole: Any = with_replaced(model, {model.base_model_prefix: base})
    return Stage(
        whole if is_last else base,
        is_first=is_first,
        is_last=is_last,
        reads_tokens=reads_tokens and is_last,
        autocast=autocast,
    )


def _without_tokens(_: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A head that reads the tokens hands them on.

    A base model takes tokens or hidden states, not both.
    """
    return (None, *args[1:]) if args else (), {**options, **({} if args else {"input_ids": None})}


def _refuse_unless_the_head_takes_hidden_states(
    model: PreTrainedModel, anatomy: Anatomy, reads_tokens: bool
) -> None:
    count = len(anatomy.blocks)
    last = without_values(_stage(model, anatomy, range(count, count), reads_tokens, None)).eval()
    tokens = torch.ones((1, TRIED_TOKENS), dtype=torch.int64)
    hidden = torch.zeros((1, TRIED_TOKENS, anatomy.width))
    try:
        with torch.no_grad():
            last(hidden, tokens=tokens, attention_mask=torch.ones_like(tokens))
    except NOT_CALLED as error:
        raise refusal(model, f"its head takes no hidden states ({one_line(error)})") from error


def _with_a_block_for_each_call(model: PreTrainedModel) -> PreTrainedModel:
    """ALBERT calls a few groups of blocks again and again: here its list names a group as often as
    it is called.
    """
    encoder: Any = getattr(model.base_model, "encoder", None)
    groups = getattr(encoder, "albert_layer_groups", None)
    if groups is None:
        return model
    layers = encoder.config.num_hidden_layers
    called = nn.ModuleList([groups[layer * len(groups) // layers] for layer in range(layers)])
    unrolled: Any = with_replaced(encoder, {"albert_layer_groups": called})
    unrolled.config = copy(encoder.config)
    unrolled.config.num_hidden_groups = layers
    return with_replaced(model, {f"{model.base_model_prefix}.encoder": unrolled})  # type: ignore[return-value]
