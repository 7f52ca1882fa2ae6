"""How a run's sequences become batches: by task, padding and packing."""

from traindyno.core.suite.suite import Settings, Task, Workload
from training.data.collate import Collate, CollateCausal, CollateClassified, CollateMasked
from training.data.masking import Masking
from training.data.padding import PadTo
from training.data.special_tokens import SpecialTokens
from training.errors import WorkloadError


def choose_collate(workload: Workload, settings: Settings, special: SpecialTokens, *, is_uniform: bool) -> Collate:
    """``is_uniform``: all sequences have the workload's length, so that nothing is padded."""
    assert workload.sequence_length is not None
    padded = PadTo(padding=settings.padding, sequence_length=workload.sequence_length, pad_token=special.pad)
    pad_to = None if is_uniform else padded
    match workload.task:
        case Task.CAUSAL_LM:
            return CollateCausal(pad_to=pad_to)
        case Task.MASKED_LM:
            if special.mask is None:
                raise WorkloadError("the tokenizer has no mask token; expected one of a masked language model")
            masking = Masking(seed=settings.seed, mask_token=special.mask, vocabulary_size=special.vocabulary_size)
            return CollateMasked(masking=masking, pad_to=pad_to)
        case _:
            return CollateClassified(pad_to=pad_to)
