"""Mutated suites whose data, models and scripts are on this machine end in a refusal with a
message: what `plan` does with them before it asks the lab.
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.cpu_limit import cpu_limit
from tests.fuzz.mutations import damaged_documents, json_of
from tests.properties import examples
from traindyno.api.local_paths import StagingRefused, travel_lines
from traindyno.api.model_check import model_lines
from traindyno.api.suite_loading import SuiteFileInvalid, load_startable_suite
from traindyno.api.suite_text import SuiteUnreadable

MOST_CPU_SECONDS = 30.0
LONGEST_TEXT = 50_000  # PyYAML reads some 30,000 characters a second
MATRIX = {"batch_size_per_device": [4, 8]}
BERT: dict[str, Any] = {"architectures": ["BertForSequenceClassification"], "model_type": "bert"}
BERT |= dict.fromkeys(("hidden_size", "intermediate_size", "vocab_size"), 16)
BERT |= {"num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 32}
GPT2 = {"model_type": "gpt2", "n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 32}
SUITES: list[dict[str, Any]] = [
    {"task": "sequence-classification", "model": "bert", "dataset": "table", "matrix": MATRIX},
    {"model": "bert", "dataset": "semicolons.csv", "matrix": MATRIX},
    {"task": "causal-lm", "model": "bert", "dataset": "deep", "matrix": MATRIX},
    {"task": "causal-lm", "model": "whisper", "dataset": "lines.txt", "matrix": MATRIX},
    {
        "task": "causal-lm",
        "model": {"config": GPT2},
        "tokenizer": {"train_vocabulary_size": 300},
        "dataset": {"path": "lines.txt"},
        "sequence_length": 16,
        "matrix": MATRIX,
    },
    {
        "source": "code",
        "model": "bert",
        "channels": {"extra": "table"},
        "dataset": {"path": "table"},
        "examples": 100,
        "hyperparameters": {"epochs": 1},
        "matrix": {"hyperparameters.batch": [4, 8]},
    },
]
FURTHER = [
    "../..",
    "x" * 300,
    "./" + "x" * 300,
    "s3://",
    "code/train.py",
    "epochs",
    "lora",
    {"model_type": {"a": 1}},
    {"model_type": "bert", "architectures": 7},
    ["bert"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outer") / "inner" / "suites"
    for name in ("table", "deep", "bert", "whisper", "code"):
        (folder / name).mkdir(parents=True)
    rows = "".join(f"a good film {row},{row % 2}\n" for row in range(20))
    (folder / "table" / "train.csv").write_text(f"text,label\n{rows}")
    (folder / "semicolons.csv").write_text(f"text;label\n{rows.replace(',', ';')}")
    nested = "[" * 3000 + "]" * 3000
    (folder / "deep" / "train.jsonl").write_text(f'{{"text": "a b", "x": {nested}}}\n' * 3)
    (folder / "lines.txt").write_text("one line of words\n" * 200)
    whisper = {"architectures": ["WhisperForConditionalGeneration"], "is_encoder_decoder": True}
    (folder / "bert" / "config.json").write_text(json.dumps(BERT))
    (folder / "whisper" / "config.json").write_text(
        json.dumps({**whisper, "model_type": "whisper"})
    )
    (folder / "code" / "train.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--batch')\n"
    )
    return folder


def end_of(folder: Path, text: str) -> str:
    """What a person is told; empty if the suite may start."""
    suite = folder / "suite.yaml"
    suite.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    try:
        loaded = load_startable_suite(suite, local=True)
        assert loaded.suite.cells
        model_lines(loaded.suite, folder)
        assert all(travel_lines(loaded.document["workload"], beside=folder))
    except (SuiteUnreadable, SuiteFileInvalid, StagingRefused) as error:
        assert str(error).encode("utf-8")  # what can't be printed is no message
        return str(error)
    return ""


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    """A suite with one to three changes of any kind, or with one of the values that failed."""
    suite = deepcopy(draw(st.sampled_from(SUITES)))
    if draw(st.booleans()):
        return draw(damaged_documents(suite))
    suite[draw(st.sampled_from([*suite, "extra", "tokenizer"]))] = draw(st.sampled_from(FURTHER))
    return suite


@pytest.mark.timeout(3000)  # 3,000 suites in make nightly
def test_a_mutated_suite_ends_without_a_traceback(folder: Path) -> None:
    accepted = 0

    @examples(300)
    @given(mutants())
    def load(mutant: Any) -> None:
        nonlocal accepted
        text = json_of(mutant)
        if text is not None and len(text) <= LONGEST_TEXT:
            with cpu_limit(MOST_CPU_SECONDS):
                accepted += not end_of(folder, text)

    load()
    assert accepted


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0, "workload.model: it has no weights"),
        (1, "workload.model: it has no weights"),  # its columns and its task are found
        (2, "values of more levels within each other than can be read"),
        (3, "is a WhisperForConditionalGeneration, an encoder with a decoder"),
        (4, ""),
        (5, ""),
    ],
)
def test_mutations_end_as_expected(number: int, told: str, folder: Path) -> None:
    end = end_of(folder, json.dumps(SUITES[number]))
    assert told in end if told else not end
