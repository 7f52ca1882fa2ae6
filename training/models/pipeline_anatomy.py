"""Finds where any model of transformers can be cut, around its repeated blocks.

The model is called with a few tokens and without its blocks, so that no family needs its own code.
A model that does more between its blocks than pass hidden states on is refused. In the shapes, L is
``TRIED_TOKENS``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from transformers import PreTrainedModel

from training.errors import WorkloadError
from training.models.blueprint import repeated_blocks
from training.models.config_numbers import NOT_BUILT

TRIED_TOKENS = 4
# The errors of a model whose parts take or return something else than hidden states.
NOT_CALLED = (*NOT_BUILT, AssertionError, IndexError, StopIteration)
# A loop over blocks may read these of each of them.
READ_OF_BLOCKS = (
    "attention_type",
    "block_type",
    "is_sliding",
    "layer_idx",
    "layer_type",
    "use_rope",
)


class PassThrough(nn.Module):
    """Takes the place of a module whose work another stage does: returns the hidden states that it
    gets.
    """

    def __init__(self, of: nn.Module | None = None, *, gives_tuple: bool = False) -> None:
        super().__init__()
        self._gives_tuple = gives_tuple
        for name in READ_OF_BLOCKS:
            if hasattr(of, name):
                setattr(self, name, getattr(of, name))

    def forward(self, *args: Any, **options: Any) -> Any:
        """Returns the hidden states [B, L, D] among its arguments, alone or as the first of a
        tuple.
        """
        hidden = next(
            filter(torch.is_tensor, (options.get("inputs_embeds"), *args, *options.values()))
        )
        return (hidden,) if self._gives_tuple else hidden


class NoPositions(nn.Module):
    """Takes the place of a table whose rows are added to embeddings: hidden states have them
    already.
    """

    def forward(self, *args: Any, **options: Any) -> torch.Tensor:
        """Returns [], zero."""
        indices = next(filter(torch.is_tensor, (*args, *options.values())))
        return torch.zeros((), device=indices.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """The parts of a model. Paths are within the base model.

    Each stand-in takes its module's place on the stages that don't need it.
    """

    path: str
    blocks: tuple[nn.Module, ...]
    gives_tuple: bool
    #: D, the features of the hidden states that blocks pass on; 0 before it was found.
    width: int
    #: Stand-ins of the modules that only the first stage needs.
    before: Mapping[str, nn.Module]
    #: Stand-ins of the modules that only the last stage needs.
    after: Mapping[str, nn.Module]

    def passed(self, numbers: Iterable[int]) -> dict[str, nn.Module]:
        """Stand-ins for the blocks of these numbers."""
        return {
            f"{self.path}.{number}": PassThrough(self.blocks[number], gives_tuple=self.gives_tuple)
            for number in numbers
        }


class Call(NamedTuple):
    path: str
    inputs: tuple[torch.Tensor, ...]
    output: Any


def dissect(model: PreTrainedModel) -> Anatomy:
    """Raises WorkloadError for a model that can't be cut, with the reason."""
    if model.base_model is model:
        raise refusal(model, "it has no base model below its head")
    blocks = tuple(repeated_blocks(model.base_model))
    lists = (
        (name, tuple(module))
        for name, module in model.base_model.named_modules()
        if isinstance(module, nn.ModuleList)
    )
    path = next((name for name, modules in lists if modules == blocks), None) if blocks else None
    if path is None:
        raise refusal(model, "it has no list of blocks of one class")
    reason = "its blocks return something else than hidden states"
    for gives_tuple in (False, True):
        bare = Anatomy(
            path=path, blocks=blocks, gives_tuple=gives_tuple, width=0, before={}, after={}
        )
        try:
            calls, output = _try(model.base_model, bare)
            if torch.is_tensor(output) and output.shape[:2] == (1, TRIED_TOKENS):
                return _anatomy(model, bare, calls)
        except NOT_CALLED as error:
            reason = f"it needs more of its blocks than hidden states ({one_line(error)})"
    raise refusal(model, reason)


def with_replaced(module: nn.Module, stand_ins: Mapping[str, nn.Module]) -> nn.Module:
    """A copy of the module with other modules at some paths.

    It shares all the rest, and the parameters.
    """
    module_copy = copy(module)
    for name, value in vars(module).items():
        # A copy has its own parts and hooks. Parameters and buffers get their values in the
        # original.
        if (
            name.startswith("_")
            and isinstance(value, dict)
            and name not in ("_parameters", "_buffers")
        ):
            vars(module_copy)[name] = copy(value)
    inner: dict[str, dict[str, nn.Module]] = {}
    for path, stand_in in stand_ins.items():
        head, _, rest = path.partition(".")
        if rest:
            inner.setdefault(head, {})[rest] = stand_in
        else:
            module_copy._modules[head] = stand_in
    for head, below in inner.items():
        module_copy._modules[head] = with_replaced(module.get_submodule(head), below)
    return module_copy


def _try(base: nn.Module, bare: Anatomy) -> tuple[list[Call], Any]:
    """Calls the base model with its blocks passed over.

    Returns what it called, in order, and its output.
    """
    calls: list[Call] = []
    passed = bare.passed(range(len(bare.blocks)))
    tried = without_values(with_replaced(base, passed))
    for path in (*_beside_the_blocks(tried, bare.path), *passed):
        _record(tried.get_submodule(path), calls, path)
    tokens = torch.ones((1, TRIED_TOKENS), dtype=torch.int64)
    with torch.no_grad():
        output = tried.eval()(input_ids=tokens, attention_mask=torch.ones_like(tokens))
    return calls, output.last_hidden_state


def _record(module: nn.Module, calls: list[Call], path: str) -> None:
    def note(_: nn.Module, args: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        inputs = tuple(filter(torch.is_tensor, (*args, *options.values())))
        calls.append(Call(path, inputs, output))

    module.register_forward_hook(note, with_kwargs=True)


def _beside_the_blocks(base: nn.Module, path: str) -> Iterator[str]:
    """The children of the base model, and of the modules around its blocks, that don't hold the
    blocks.
    """
    around = ""
    for name in path.split("."):
        for child, _ in base.get_submodule(around).named_children():
            if child != name:
                yield f"{around}.{child}".lstrip(".")
        around = f"{around}.{name}".lstrip(".")


def without_values(module: nn.Module) -> nn.Module:
    """A copy whose parameters are one zero each, seen as a tensor of their shape: they need no
    memory.
    """
    module_copy = deepcopy(module)
    for part in module_copy.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                zeros = torch.zeros((), dtype=parameter.dtype).expand(parameter.shape)
                part._parameters[name] = nn.Parameter(zeros, requires_grad=False)
    return module_copy


def _anatomy(model: PreTrainedModel, bare: Anatomy, calls: Sequence[Call]) -> Anatomy:
    blocks = list(bare.passed(range(len(bare.blocks))))
    places = [place for place, call in enumerate(calls) if call.path in blocks]
    if [calls[place].path for place in places] != blocks:
        raise refusal(model, "it does not call each block once, in their order")
    first = places[0]
    last = places[-1]
    if len(places) != last - first + 1:
        raise refusal(model, "it calls other modules between its blocks")
    hidden, *others = calls[first].inputs
    if any(other.is_floating_point() and other.shape == hidden.shape for other in others):
        raise refusal(model, "its blocks get the embeddings besides the hidden states")
    before = dict(_needed_first(model.base_model, calls[:first], hidden))
    after = {call.path: PassThrough() for call in calls[last + 1 :] if torch.is_tensor(call.output)}
    if before.keys() & after.keys():
        raise refusal(model, "it calls a module before its blocks and again after them")
    anatomy = replace(bare, width=hidden.shape[-1], before=before, after=after)
    if not _returns_what_it_gets(model.base_model, anatomy):
        raise refusal(model, "it changes hidden states outside its blocks")
    return anatomy


def _needed_first(
    base: Any, calls: Iterable[Call], hidden: torch.Tensor
) -> Iterator[tuple[str, nn.Module]]:
    """What makes hidden states [B, L, D] of tokens.

    Rotary tables and relative positions are made on each stage.
    """
    embedding = base.get_input_embeddings()
    for call in calls:
        if not torch.is_tensor(call.output) or not call.output.is_floating_point():
            continue
        holds_tokens = any(
            module is embedding for module in base.get_submodule(call.path).modules()
        )
        if holds_tokens or any(tensor.is_floating_point() for tensor in call.inputs):
            yield call.path, PassThrough()
        elif call.output.shape[-1] == hidden.shape[-1]:
            yield call.path, NoPositions()


def _returns_what_it_gets(base: nn.Module, anatomy: Anatomy) -> bool:
    """Whether a stage between others would, if it had no blocks: else each stage would apply
    something again.
    """
    stand_ins = {**anatomy.before, **anatomy.after, **anatomy.passed(range(len(anatomy.blocks)))}
    stage = without_values(with_replaced(base, stand_ins)).eval()
    sent = torch.arange(1.0, TRIED_TOKENS * anatomy.width + 1).view(1, TRIED_TOKENS, anatomy.width)
    mask = torch.ones((1, TRIED_TOKENS), dtype=torch.int64)
    with torch.no_grad():
        received = stage(inputs_embeds=sent.clone(), attention_mask=mask).last_hidden_state
    # A fake tensor has no values. What it is an estimate for looks at real ones.
    return received.shape == sent.shape and (
        isinstance(received, FakeTensor) or torch.equal(received, sent)
    )


def one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def refusal(model: PreTrainedModel, reason: str) -> WorkloadError:
    return WorkloadError(
        f"strategy pipeline can't cut model type {model.config.model_type} into stages: {reason}; "
        "expected strategy fsdp, or a model whose blocks only pass hidden states on, such as "
        "llama, qwen3, gpt2 or bert"
    )
