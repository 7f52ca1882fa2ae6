"""The notebooks' learning rate: a linear warm-up, then linear down to the least rate."""

from argparse import Namespace


def linear_rate(step: int, arguments: Namespace) -> float:
    """The rate of the step after ``step`` steps. ``warmup`` is a share of ``lr_decay_iters``."""
    warm_up = int(arguments.warmup * arguments.lr_decay_iters)
    if step < warm_up:
        return float(arguments.lr * (step + 1) / warm_up)
    remaining = max(0.0, 1 - (step - warm_up) / max(1, arguments.lr_decay_iters - warm_up))
    return float(arguments.min_lr + (arguments.lr - arguments.min_lr) * remaining)
