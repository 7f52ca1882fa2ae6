"""How a run's sequences become batches: by task, padding and packing."""

from transformers import PreTrainedTokenizerBase

from traindyno.core.suite import Settings, Task, Workload
from training.data.collate import Collate, CollatePackedCausal
from training.errors import WorkloadError


def choose_collate(workload: Workload, settings: Settings, tokenizer: PreTrainedTokenizerBase) -> Collate:
    assert workload.sequence_length is not None
    if workload.task is Task.CAUSAL_LM and settings.packing:
        return CollatePackedCausal(sequence_length=workload.sequence_length)
    raise WorkloadError(f"no way to make batches for task {workload.task} is known")
