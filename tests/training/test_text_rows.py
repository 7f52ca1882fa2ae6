"""A causal language model's rows are the texts as their tokenizer gives them, each with one end
token: packed and not, to train, to evaluate, and behind an endpoint.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.properties import examples
from tests.training.word_tokenizer import word_tokenizer
from traindyno.core.run.workload import Dataset, Workload
from traindyno.core.suite.choices import Task
from training import inference
from training.data import file_text
from training.data.collate import special_tokens
from training.data.dataset import TokenDataset
from training.data.prepare import prepare
from training.data.sequences import MANIFEST, Sequences, read_sequences
from training.errors import WorkloadError
from training.serving.model_folder import make_servable

LENGTH = 6
ASKED = Workload(
    task=Task.CAUSAL_LM,
    examples=10_000,
    sequence_length=LENGTH,
    dataset=Dataset(path="data", evaluation_split="test"),
)
BEGIN = 1
END = 2
OTHER = 3
WORDS = ("[UNK]", "<s>", "</s>", "<sop>", "a", "b", "c")
# What the tokenizer puts around a text
TEMPLATES: Mapping[str, str | None] = {
    "nothing": None,
    "begin": "<s> $A",
    "two before": "<s> <sop> $A",
    "begin and end": "<s> $A </s>",
    "end": "$A </s>",
    "something else behind": "<s> $A <sop>",
}
TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=9).map(" ".join),
    min_size=4,
    max_size=12,
)


def tokenizer_of(template: str | None) -> PreTrainedTokenizerFast:
    tokenizer = word_tokenizer(WORDS, unk_token="[UNK]", bos_token="<s>", eos_token="</s>")
    if template is not None:
        special = [(word, WORDS.index(word)) for word in template.split() if word != "$A"]
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=special
        )
    return tokenizer


def own_row(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    """The tokenizer's ids and one end token, of a text without special tokens of its own."""
    ids: list[int] = tokenizer(text)["input_ids"]
    return ids if ids[-1:] == [END] else [*ids, END]


def write(folder: Path, texts: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    for split in ("train", "test"):
        (folder / f"{split}.jsonl").write_text(lines)
    return folder


def rows(sequences: Sequences) -> list[list[int]]:
    spans = zip(sequences.begins, sequences.lengths, strict=True)
    return [sequences.tokens[begin : begin + length].tolist() for begin, length in spans]


def prepared(
    folder: Path, tokenizer: PreTrainedTokenizerFast, *, packing: bool, name: str = "train"
) -> Sequences:
    out = folder / f"{packing}"
    if not out.exists():
        prepare(ASKED, tokenizer, folder / "data", out, packing=packing)
    return read_sequences(out / name)


def chunks(tokens: list[int]) -> Iterator[list[int]]:
    for begin in range(0, len(tokens) - LENGTH + 1, LENGTH):
        yield tokens[begin : begin + LENGTH]


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
@examples(10)
@given(texts=TEXTS)
def test_rows_are_the_tokenizers_own_ids_and_one_end_token(
    template: str | None, texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    tokenizer = tokenizer_of(template)
    write(folder / "data", texts)
    expected = [own_row(tokenizer, text) for text in texts]
    joined = [token for row in expected for token in row]
    for name in ("train", "evaluation"):
        single = prepared(folder, tokenizer, packing=False, name=name)
        assert rows(single) == [row[:LENGTH] for row in expected]
        assert single.documents is None
    blocks = list(chunks(joined))
    if blocks:
        packed = prepared(folder, tokenizer, packing=True)
        assert rows(packed) == blocks
        begins = np.cumsum([0, *map(len, expected)])
        assert packed.documents is not None
        assert packed.documents.tolist() == [at for at in begins if at < len(blocks) * LENGTH]


@pytest.mark.parametrize("packing", [True, False], ids=["packed", "one per row"])
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("<s> a b", [BEGIN, 4, 5, END]),
        ("a b </s>", [BEGIN, 4, 5, END]),
        ("<s> a b </s>", [BEGIN, 4, 5, END]),
        ("a </s> b", [BEGIN, 4, END, 5, END]),  # an end token in a text ends no document
        ("a <s> b", [BEGIN, 4, BEGIN, 5, END]),
    ],
)
@pytest.mark.parametrize("template", ["begin", "begin and end"])
def test_a_text_with_begin_and_end_tokens_gets_no_second_ones(
    template: str, text: str, ids: list[int], packing: bool, tmp_path: Path
) -> None:
    write(tmp_path / "data", [text] * 6)
    tokenizer = tokenizer_of(TEMPLATES[template])
    sequences = prepared(tmp_path, tokenizer, packing=packing)
    assert [token for row in rows(sequences) for token in row][: len(ids)] == ids
    if packing:
        assert sequences.documents is not None
        assert sequences.documents[:2].tolist() == [0, len(ids)]


@pytest.mark.parametrize("template", ["nothing", "begin", "begin and end"])
@pytest.mark.parametrize("packing", [True, False], ids=["packed", "one per row"])
def test_a_text_read_in_pieces_has_the_rows_of_the_whole(
    template: str, packing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row of it may be of many pieces."""
    (tmp_path / "data").mkdir()
    text = "\n".join(["a", "b", "c", "b", "a"] * 30)
    for name in ("train-1.txt", "train-2.txt", "test.txt"):
        (tmp_path / "data" / name).write_text(text)
    monkeypatch.setattr(file_text, "PIECE_CHARACTERS", 16)
    monkeypatch.setattr(file_text, "CHUNK_BYTES", 16)
    tokenizer = tokenizer_of(TEMPLATES[template])
    asked = Workload(
        task=Task.CAUSAL_LM, examples=9, sequence_length=100, dataset=Dataset(path="data")
    )
    prepare(asked, tokenizer, tmp_path / "data", tmp_path / "out", packing=packing)
    sequences = read_sequences(tmp_path / "out" / "train")
    whole = own_row(tokenizer, text)
    if packing:
        joined = whole * 2
        assert rows(sequences) == [joined[at : at + 100] for at in range(0, len(joined) - 99, 100)]
        assert sequences.documents is not None
        assert sequences.documents.tolist() == [0, len(whole)]
    else:
        assert rows(sequences) == [whole[:100]] * 2


def test_a_text_without_a_token_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "data", ["a", "  ", "b"])
    sequences = prepared(tmp_path, tokenizer_of("<s> $A"), packing=False)
    assert rows(sequences) == [[BEGIN, 4, END], [BEGIN, 5, END]]
    assert "too short to train on: 1 (such as train.jsonl, row 2)" in capsys.readouterr().out


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_an_endpoint_reads_a_text_as_training_did(template: str | None, tmp_path: Path) -> None:
    texts = ["a b c", "<s> b", "c"]
    tokenizer = tokenizer_of(template)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = "[UNK]"
    write(tmp_path / "data", texts)
    trained = rows(prepared(tmp_path, tokenizer, packing=False))
    served = served_llama(tmp_path / "model", tokenizer)
    read: list[list[int]] = []

    def keep(_model: object, _args: object, given: dict[str, torch.Tensor]) -> None:
        for ids, mask in zip(given["input_ids"], given["attention_mask"], strict=True):
            read.append(ids[mask.bool()].tolist())

    served.model.register_forward_pre_hook(keep, with_kwargs=True)
    inference.predict_fn(inference.input_fn(json.dumps({"inputs": texts})), served)
    behind = {"something else behind": 2}.get(_name(template), 1)
    assert read == [row[:-behind] for row in trained]


def test_an_endpoint_goes_on_from_the_end_of_an_overlong_text(tmp_path: Path) -> None:
    served = served_llama(tmp_path, tokenizer_of(None), max_position_embeddings=4)
    overlong, end, begin = inference.predict(["a b c a b", "b c a b", "a b c a"], served)
    assert overlong == end
    assert overlong != begin


def test_an_endpoint_renders_messages_as_the_training_data_was(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(None)
    tokenizer.chat_template = "{{ lead }} {% for turn in messages %}{{ turn.content }}{% endfor %}"
    served_llama(tmp_path, tokenizer)
    dataset = TokenDataset(
        train=None,
        evaluation=None,
        tokenizer=tokenizer,
        special_tokens=special_tokens(tokenizer),
        is_uniform=False,
    )
    chats = Dataset(path="chats.jsonl", chat_template_kwargs={"lead": "c b"})
    make_servable(tmp_path, replace(ASKED, dataset=chats), dataset)
    served = inference.load(tmp_path, torch.device("cpu"))
    request = inference.input_fn('{"messages": [{"role": "user", "content": "a"}]}')
    led, alone = inference.predict(["c b a", "a"], served)
    assert inference.predict_fn(request, served) == led != alone


def served_llama(
    folder: Path, tokenizer: PreTrainedTokenizerFast, **sizes: Any
) -> inference.Served:
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        **sizes,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / inference.SETTINGS_FILE).write_text('{"task": "causal-lm"}')
    return inference.load(folder, torch.device("cpu"))


def _name(template: str | None) -> str:
    return next(name for name, known in TEMPLATES.items() if known == template)


def test_tokens_of_another_traindyno_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "data", ["a b c"] * 9)
    prepared(tmp_path, tokenizer_of(None), packing=True)
    manifest = tmp_path / "True" / "train" / MANIFEST
    described = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**described, "arrays": [*described["arrays"], "counted"]}))
    with pytest.raises(WorkloadError, match=r"arrays of another Traindyno \(counted\); expected"):
        read_sequences(tmp_path / "True" / "train")
    manifest.write_text(json.dumps({"sequences": 6, "vocabulary_size": 7}))  # as version 1 had it
    with pytest.raises(WorkloadError, match="got no version, expected 3; make the tokens again"):
        read_sequences(tmp_path / "True" / "train")
