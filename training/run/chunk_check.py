"""Refuses a loss in chunks for a model whose logits are more than its head makes of its hidden
states.
"""

import torch

from traindyno.core.suite.choices import Precision
from training.errors import WorkloadError
from training.models.objective import NO_CHUNKS
from training.strategies import Setup, TrainingStrategy

TOKENS = 32
# The part of the largest logit that rounding alone may change.
SAME_IN_FP32 = 1e-5
SAME_IN_16_BITS = 5e-3


def refuse_unless_the_head_is_apart(
    setup: Setup, strategy: TrainingStrategy, model_type: str, vocabulary_size: int
) -> None:
    """Raises WorkloadError. Computes the logits of a few tokens twice; all ranks take part."""
    if setup.settings.loss_chunks is None:
        return
    tokens = torch.randint(vocabulary_size, (1, TOKENS), generator=torch.Generator().manual_seed(0))
    batch = {"input_ids": tokens, "labels": tokens, "compares": torch.ones(())}
    reason = "its logits have something behind the head, such as a soft cap or a bias"
    strategy.set_training(False)
    try:
        with torch.no_grad():
            scores = strategy.score(setup.accelerator.to_device(batch))
    except (RuntimeError, TypeError) as error:
        raise _refusal(model_type, f"{reason} ({error})") from error
    is_fp32 = setup.settings.precision is Precision.FP32
    limit = SAME_IN_FP32 if is_fp32 else SAME_IN_16_BITS
    if scores is not None and float(scores[0]) > limit * float(scores[1]):
        raise _refusal(model_type, f"{reason}: they differ by {float(scores[0]):.2g}")


def _refusal(model_type: str, why: str) -> WorkloadError:
    return WorkloadError(
        f"{NO_CHUNKS} with a {model_type}: {why}; expected no loss_chunks, which computes all "
        "logits at once"
    )
