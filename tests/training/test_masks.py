"""Attention masks are transformers' own, and where PyTorch's kernels know the pattern, there is
none.
"""

from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedModel

from tests.training.family_sweep import transformers_own_masks
from tests.training.strategy_cases import Case, blueprint_of, global_batch
from training.models.blueprint import replaced

pytestmark = pytest.mark.usefixtures("of_one_thread")

FULL = ("causal-lm/gpt2", "causal-lm/llama", "masked-lm/bert")


def model_of(name: str) -> PreTrainedModel:
    model = blueprint_of(Case(model=name, layer_count=None)).materialise(torch.device("cpu"))
    model.train(False)
    return model


@pytest.mark.parametrize("name", FULL)
def test_packed_rows_with_all_tokens_visible_need_no_mask(name: str) -> None:
    seen: list[torch.Tensor | None] = []
    attend: Any = functional.scaled_dot_product_attention

    def watched(
        *tensors: torch.Tensor, attn_mask: torch.Tensor | None = None, **others: Any
    ) -> torch.Tensor:
        seen.append(attn_mask)
        attended: torch.Tensor = attend(*tensors, **{"attn_mask": attn_mask, **others})
        return attended

    with replaced(functional, "scaled_dot_product_attention", watched):
        model_of(name)(input_ids=global_batch(name, 0, is_padded=False)["input_ids"])
    assert seen
    assert seen == [None] * len(seen)


class Waits(TorchDispatchMode):
    """Counts the operations that wait for a device to read a tensor's value."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["causal-lm/gpt2", "causal-lm/llama", "causal-lm/mistral"])
def test_no_batch_is_read_back_from_the_device(name: str) -> None:
    model = model_of(name)
    tokens = global_batch(name, 0, is_padded=False)["input_ids"]
    with Waits() as ours:
        model(input_ids=tokens)
    with transformers_own_masks(), Waits() as theirs:
        model(input_ids=tokens)
    assert ours.count == 0 < theirs.count


@pytest.mark.parametrize("name", ["causal-lm/gpt2", "causal-lm/llama"])
def test_a_compiled_model_makes_no_mask_either(name: str) -> None:
    masks: list[object] = []

    def keep(graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Any:
        attention = [node for node in graph.graph.nodes if "scaled_dot_product" in str(node.target)]
        masks.extend(node.kwargs.get("attn_mask") for node in attention)
        return graph.forward

    compiled = torch.compile(model_of(name), backend=keep)
    compiled(input_ids=global_batch(name, 0, is_padded=False)["input_ids"])
    assert masks
    assert masks == [None] * len(masks)
