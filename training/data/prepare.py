"""Makes a folder of tokens from a dataset, with the tokenizer that made them."""

import itertools
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import InputMode, Task
from training.data.chat_encoding import ChatEncoder
from training.data.chat_template import choose_template
from training.data.checked_rows import refuse_half_characters
from training.data.conversations import Chat, PromptedText, conversations, has_chat
from training.data.encoding import Encoder
from training.data.files import DataRoot, find_files
from training.data.labels import LabelValues, label_cautions, number_labels, write_label_names
from training.data.rows import read_rows
from training.data.sequences import EVALUATION, TOKENIZER, TRAIN, SequenceWriter, write_labels
from training.errors import WorkloadError, volume_of
from training.models.model_check import refuse_forward
from training.models.model_config import labels_of_head, model_config, read_tokenizer
from training.process.job import JobPaths

TRAINING_CHARACTERS = (
    20_000_000  # more text changes a vocabulary little and takes time from every run
)
END_OF_TEXT = "<|endoftext|>"
MANY_UNKNOWN = 0.1  # of the tokens of a text that the tokenizer was made for, few are
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def load_tokenizer(workload: Workload, job: JobPaths) -> PreTrainedTokenizerBase:
    asked = workload.tokenizer
    if asked is not None and asked.train_vocabulary_size is not None:
        return train_tokenizer(workload, job.data_root, asked.train_vocabulary_size)
    path = job.tokenizer_path or job.model_path
    if path is None:
        raise WorkloadError(
            "the workload has a model from a config and no tokenizer; expected tokenizer.path or "
            "tokenizer.train_vocabulary_size"
        )
    return read_tokenizer(workload, path, runs_code=workload.trust_remote_code)


def _reads_chat(workload: Workload, root: DataRoot | None) -> bool:
    dataset = workload.dataset
    assert dataset is not None
    files = None if root is None else find_files(dataset, root, dataset.split)
    return has_chat(workload, files)


def train_tokenizer(
    workload: Workload, root: DataRoot | None, vocabulary_size: int
) -> PreTrainedTokenizerBase:
    assert workload.dataset is not None
    dataset = workload.dataset
    split = workload.dataset.split
    parts: Iterator[Iterable[str]]
    if _reads_chat(workload, root):
        parts = map(_checked_texts, conversations(dataset, root, split))
    else:
        rows = read_rows(dataset, root, split, with_labels=False)
        parts = (batch.texts for batch in rows)
    texts = _up_to(TRAINING_CHARACTERS, itertools.chain.from_iterable(parts))
    if workload.task is Task.CAUSAL_LM:
        tokenizer = _byte_level(texts, vocabulary_size, [END_OF_TEXT])
        special = dict.fromkeys(("bos_token", "eos_token", "pad_token"), END_OF_TEXT)
    else:
        tokenizer = _byte_level(texts, vocabulary_size, list(SPECIAL_TOKENS.values()))
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
        )
        special = SPECIAL_TOKENS
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)  # type: ignore[no-untyped-call]


def _checked_texts(chat: Chat | PromptedText) -> Iterator[str]:
    for text in chat.texts:
        refuse_half_characters(text, chat.place)
        yield text


def _up_to(characters: int, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield text[:characters]
        characters -= len(text)
        if characters <= 0:
            return


def _byte_level(
    texts: Iterator[str], vocabulary_size: int, special_tokens: Sequence[str]
) -> Tokenizer:
    """Trains a tokenizer like GPT-2's.

    It has the same vocabulary every time; WordPiece's has not (tokenizers 0.23).
    """
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


def tokenise(
    workload: Workload, job: JobPaths, folder: Path, *, packing: bool, sequences: int | None = None
) -> None:
    """Fills ``folder``, which every process of a host then reads.

    A streamed dataset's training part stays in S3.

    The training part has at most so many ``sequences``; None stands for the workload's examples.
    """
    assert workload.dataset is not None
    tokenizer = load_tokenizer(workload, job)
    if _reads_chat(workload, job.data_root):
        choose_template(tokenizer, workload.dataset, job.chat_template)
    model = workload.model
    path = job.model_path
    head: Sequence[str] = ()
    if model is not None and (path is not None or model.config is not None):
        config = model_config(
            workload, tokenizer, model_path=path
        )  # refuses a tokenizer of another
        refuse_forward(config, workload)
        head = labels_of_head(config)
    limited = replace(workload, examples=sequences or workload.examples)
    folder.mkdir(parents=True, exist_ok=True)
    with volume_of(f"tokenising {workload.dataset.path}", folder):
        prepare(limited, tokenizer, job.data_root, folder, packing=packing, head=head)
        tokenizer.save_pretrained(folder / TOKENIZER)


def prepare(
    workload: Workload,
    tokenizer: PreTrainedTokenizerBase,
    root: DataRoot | None,
    folder: Path,
    *,
    packing: bool,
    head: Sequence[str] = (),
) -> None:
    """Writes the tokens of a workload.

    The folder gets ``train``, the workload's examples from the beginning of the split, unless it is
    streamed, and the evaluation split, if the workload names one. Sequences are written as they are
    made, and rows behind the last are not read.

    Args:
        workload: The suite's workload.
        tokenizer: The tokenizer that makes the tokens.
        root: Where the dataset is.
        folder: The folder that is filled.
        packing: Whether a sequence may have several texts.
        head: The labels of a saved classifier by their numbers.
    """
    dataset = workload.dataset
    assert dataset is not None
    splits = {} if dataset.input_mode is InputMode.STREAM else {TRAIN: dataset.split}
    if dataset.evaluation_split is not None:
        splits[EVALUATION] = dataset.evaluation_split
    values = LabelValues()
    is_chat = _reads_chat(workload, root)
    codes = {
        name: _write_split(
            workload,
            tokenizer,
            root,
            split,
            folder=folder / name,
            values=values,
            packing=packing,
            is_chat=is_chat,
        )
        for name, split in splits.items()
    }
    numbers = number_labels(values.firsts, workload.label_count, head)
    for line in label_cautions(values.firsts, dataset.label_column):
        print(f"caution: {line}", flush=True)  # noqa: T201
    for name, of_part in codes.items():
        if of_part:
            write_labels(folder / name, values.numbered(of_part, numbers))
    write_label_names(folder, numbers)


def _write_split(
    workload: Workload,
    tokenizer: PreTrainedTokenizerBase,
    root: DataRoot | None,
    split: str,
    *,
    folder: Path,
    values: LabelValues,
    packing: bool,
    is_chat: bool,
) -> "array[int]":
    """Returns the codes of the split's labels; none without labels."""
    dataset = workload.dataset
    length = workload.sequence_length
    assert dataset is not None
    assert length is not None
    encoder: Encoder | ChatEncoder
    if is_chat:
        encoder = ChatEncoder(tokenizer, dataset, sequence_length=length, packing=packing)
        sequences = encoder.encode(conversations(dataset, root, split))
    else:
        encoder = Encoder(tokenizer, task=workload.task, sequence_length=length, packing=packing)
        with_labels = workload.task is Task.SEQUENCE_CLASSIFICATION
        sequences = encoder.encode(read_rows(dataset, root, split, with_labels=with_labels))
    writer = SequenceWriter(folder, len(tokenizer))
    codes = array("i")
    unknown = tokenizer.unk_token_id
    of_unknown = 0
    of_all = 0
    most = workload.examples if folder.name == TRAIN else None
    for sequence in itertools.islice(sequences, most):
        writer.append(sequence.tokens, sequence.documents, sequence.loss_mask)
        of_unknown = of_unknown + int((sequence.tokens == unknown).sum())
        of_all = of_all + len(sequence.tokens)
        if sequence.label is not None:
            codes.append(values.code(sequence.label))
    writer.close()
    if not len(writer):
        place = root or dataset.path
        raise WorkloadError(
            f"the split {split!r} of the dataset at {place} gives no sequence of {length} tokens"
        )
    if unknown not in (None, tokenizer.eos_token_id) and of_unknown > MANY_UNKNOWN * of_all:
        share = f"{of_unknown / of_all:.0%} of the tokens of split {split}".replace("%", " %")
        print(f"caution: {share} are unknown to the tokenizer ({tokenizer.unk_token})", flush=True)  # noqa: T201
    source = ", ".join(encoder.sources)[:400]
    print(  # noqa: T201
        f"split {split}: {len(writer):,} sequences from {source}{encoder.summary()}", flush=True
    )
    return codes
