"""The run's tokenizer: the model's own, one from a path, or one trained on the dataset."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from traindyno.core.suite.choices import Task
from traindyno.core.suite.workload import Workload
from training.data.rows import DataRoot, read_rows
from training.errors import WorkloadError, explained
from training.process.job import Job

TRAINING_CHARACTERS = 20_000_000  # more text changes a vocabulary little and takes time from every run
END_OF_TEXT = "<|endoftext|>"
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def load_tokenizer(workload: Workload, job: Job) -> PreTrainedTokenizerBase:
    asked = workload.tokenizer
    if asked is not None and asked.train_vocabulary_size is not None:
        return train_tokenizer(workload, job.data_root, asked.train_vocabulary_size)
    path = job.tokenizer_path or job.model_path
    if path is None:
        raise WorkloadError(
            "the workload has a model from a config and no tokenizer; expected tokenizer.path or "
            "tokenizer.train_vocabulary_size"
        )
    with explained(f"the tokenizer {path}"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            path, revision=_revision(workload), trust_remote_code=workload.trust_remote_code
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _revision(workload: Workload) -> str | None:
    if workload.tokenizer is not None:
        return workload.tokenizer.revision
    return workload.model.revision if workload.model else None


def train_tokenizer(workload: Workload, root: DataRoot | None, vocabulary_size: int) -> PreTrainedTokenizerBase:
    assert workload.dataset is not None
    rows = read_rows(workload.dataset, root, workload.dataset.split, with_labels=False)
    texts = _up_to(TRAINING_CHARACTERS, itertools.chain.from_iterable(batch.texts for batch in rows))
    if workload.task is Task.CAUSAL_LM:
        tokenizer = _byte_level(texts, vocabulary_size, [END_OF_TEXT])
        special = dict.fromkeys(("bos_token", "eos_token", "pad_token"), END_OF_TEXT)
    else:
        tokenizer = _byte_level(texts, vocabulary_size, list(SPECIAL_TOKENS.values()))
        tokenizer.post_processor = _framing(tokenizer)
        special = SPECIAL_TOKENS
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)  # type: ignore[no-untyped-call]


def _up_to(characters: int, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield text[:characters]
        characters -= len(text)
        if characters <= 0:
            return


def _byte_level(texts: Iterator[str], vocabulary_size: int, special_tokens: Sequence[str]) -> Tokenizer:
    """Trains a tokenizer like GPT-2's. It has the same vocabulary every time; WordPiece's has not (tokenizers 0.23)."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=list(special_tokens),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _framing(tokenizer: Tokenizer) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
