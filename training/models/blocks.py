"""The repeated blocks of a transformers model, which strategies shard, distribute or recompute one by one."""

from torch import nn


def repeated_blocks(model: nn.Module) -> list[nn.Module]:
    """The blocks of the heaviest list of modules of one class: outermost first, so ALBERT gives its shared groups."""
    candidates = [
        list(module) for module in model.modules() if isinstance(module, nn.ModuleList) and _is_uniform(module)
    ]
    return max(candidates, key=_parameter_count, default=[])


def _is_uniform(modules: nn.ModuleList) -> bool:
    return len({type(module) for module in modules}) == 1


def _parameter_count(blocks: list[nn.Module]) -> int:
    return sum(parameter.numel() for block in blocks for parameter in block.parameters())
