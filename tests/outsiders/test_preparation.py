"""People's data as tokens: one numbering of labels, whole evaluation splits, no row that nothing
can be learnt from.
"""

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Dataset, Model, Workload
from traindyno.core.suite.choices import Task
from training.data.labels import Labelled, LabelNumbers, read_label_names
from training.data.prepare import prepare
from training.data.sequences import read_sequences
from training.errors import WorkloadError
from training.models.model import build_model

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    model = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    model.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
    }
    return PreTrainedTokenizerFast(tokenizer_object=model, mask_token="[MASK]", **special)  # type: ignore[no-untyped-call]


def workload(task: Task, *, evaluation_split: str | None = None) -> Workload:
    return Workload(
        task=task,
        examples=10_000,
        sequence_length=8,
        label_count=3 if task is Task.SEQUENCE_CLASSIFICATION else None,
        dataset=Dataset(path="data", evaluation_split=evaluation_split),
        model=Model(
            config={
                "model_type": "bert",
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "intermediate_size": 16,
                "vocab_size": len(WORDS),
            }
        ),
    )


def csv(folder: Path, name: str, *rows: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("text,label\n" + "".join(f"{row}\n" for row in rows))


def test_labels_have_one_numbering_for_both_splits_and_the_model_knows_their_names(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    csv(tmp_path / "data", "train.csv", "a b,sad", "b c,glad", "a,mad")
    csv(tmp_path / "data", "test.csv", "c,mad", "c,sad", "c,glad")
    asked = workload(Task.SEQUENCE_CLASSIFICATION, evaluation_split="test")
    prepare(asked, tokenizer, tmp_path / "data", tmp_path / "out", packing=False)
    assert read_label_names(tmp_path / "out") == ["glad", "mad", "sad"]
    train, evaluation = (
        read_sequences(tmp_path / "out" / name) for name in ("train", "evaluation")
    )
    assert train.labels is not None
    assert evaluation.labels is not None
    assert (train.labels.tolist(), evaluation.labels.tolist()) == ([2, 0, 1], [1, 2, 0])
    names = read_label_names(tmp_path / "out")
    model = build_model(
        asked, Settings(instance="local.cpu"), None, model_path=None, label_names=names
    ).model
    assert model.config.id2label == {0: "glad", 1: "mad", 2: "sad"}
    assert model.config.label2id == {"glad": 0, "mad": 1, "sad": 2}


def test_an_evaluation_split_is_covered_whole(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    csv(tmp_path / "data", "train.csv", "a b,0")
    csv(tmp_path / "data", "test.csv", *["a b,0"] * 600)
    asked = workload(Task.SEQUENCE_CLASSIFICATION, evaluation_split="test")
    prepare(asked, tokenizer, tmp_path / "data", tmp_path / "out", packing=False)
    assert len(read_sequences(tmp_path / "out" / "evaluation")) == 600


@pytest.mark.parametrize(
    ("task", "kept", "told"),
    [
        (Task.CAUSAL_LM, [2, 3, 4], "1 (such as train.csv, row 3)"),  # the end is learnt too
        (
            Task.MASKED_LM,
            [3, 4, 5],
            "1 (such as train.csv, row 3)",
        ),  # [CLS] and [SEP] are around the text
        (Task.SEQUENCE_CLASSIFICATION, [1, 2, 3], "1 (such as train.csv, row 3)"),
    ],
)
def test_rows_too_short_to_train_on_are_left_out_and_counted(
    task: Task, kept: list[int], told: str, tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    csv(tmp_path / "data", "train.csv", "a,0", "a b,0", ",0", "a b c,0")
    with redirect_stdout(StringIO()) as printed:
        prepare(workload(task), tokenizer, tmp_path / "data", tmp_path / "out", packing=False)
    assert read_sequences(tmp_path / "out" / "train").lengths.tolist() == kept
    assert (
        f"from train.csv; rows left out because they are too short to train on: {told}\n"
        in printed.getvalue()
    )


def test_labels_stay_with_their_texts_beside_empty_ones(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    csv(tmp_path / "data", "train.csv", ",0", "a,1", '" ",0', "a b,0", "b,1", ",1")
    asked = workload(Task.SEQUENCE_CLASSIFICATION)
    prepare(asked, tokenizer, tmp_path / "data", tmp_path / "out", packing=False)
    sequences = read_sequences(tmp_path / "out" / "train")
    assert sequences.labels is not None
    assert (sequences.lengths.tolist(), sequences.labels.tolist()) == ([1, 2, 1], [1, 0, 1])


def test_packing_keeps_every_token_of_whole_blocks(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    csv(tmp_path / "data", "train.csv", "a b c,0", "b,0", "c c c c,0", "a,0")
    prepare(workload(Task.CAUSAL_LM), tokenizer, tmp_path / "data", tmp_path / "out", packing=True)
    (block,) = read_sequences(tmp_path / "out" / "train").block(np.array([0])).tolist()
    a, b, c, end = (WORDS.index(word) for word in ("a", "b", "c", "[SEP]"))
    assert block == [a, b, c, end, b, end, c, c]


def test_a_stream_takes_numbers_and_refuses_texts() -> None:
    numbers = LabelNumbers(names={}, label_count=3)
    assert numbers.number(Labelled(2.0, "part-1.csv", 1)) == 2
    with pytest.raises(
        WorkloadError,
        match=r"part-1.csv, row 7: the label is 'sad'; expected a whole number from 0",
    ):
        numbers.number(Labelled("sad", "part-1.csv", 7))


@pytest.mark.parametrize(
    ("text", "said"), [("a b c q", " 25 % of the tokens of split train are unknown"), ("a b c", "")]
)
def test_many_unknown_tokens_are_a_caution(
    text: str,
    said: str,
    tmp_path: Path,
    tokenizer: PreTrainedTokenizerFast,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text(f"{text} " * 40)
    prepare(
        workload(Task.CAUSAL_LM), tokenizer, tmp_path / "data", tmp_path / "tokens", packing=False
    )
    told = capsys.readouterr().out
    assert (
        (f"caution:{said} to the tokenizer ([UNK])" in told) if said else ("caution" not in told)
    ), told
