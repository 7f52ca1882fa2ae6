"""What a suite file leaves out is found in its data, its model and this machine, or asked for by
name.
"""

import gzip
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet
from transformers import CONFIG_MAPPING

from tests.unit.core.suite.test_shipped_suites import READ_FROM_DATA, check_baseline
from traindyno.api import local_data
from traindyno.api.suite_defaults import CompletedSuite
from traindyno.api.suite_loading import Suite, SuiteFileInvalid, load_startable_suite
from traindyno.core.errors import SuiteInvalid
from traindyno.core.run.data_formats import TOKENISED
from traindyno.core.run.saved_model import longest_sequence
from training.models.config_numbers import NOT_BUILT, most_positions, needed_positions

SUITES = Path(__file__).parents[2] / "suites"
ROWS = [
    (f"the film number {row} was {'great' if row % 2 else 'poor'}", "up" if row % 2 else "down")
    for row in range(40)
]
MATRIX = {"batch_size_per_device": [8, 32]}
ALL = {"examples": 9, "sequence_length": 16, "label_count": 2}
LONG = "the cat sat on the mat"
TURNS = [{"role": "user", "content": LONG}, {"role": "assistant", "content": "no"}]
CHAT_ROWS = {
    "messages": {"messages": TURNS, "id": "7"},
    "conversations": {"conversations": json.dumps(TURNS)},
    "prompt and completion": {"prompt": LONG, "completion": "no"},
    "instruction and output": {"instruction": LONG, "input": "", "output": "no"},
}


def csv_text(rows: list[tuple[str, str]], header: str = "review,sentiment") -> str:
    return "\n".join([header, *(f"{text},{label}" for text, label in rows), ""])


def objects(rows: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"review": text, "sentiment": label} for text, label in rows]


def write_data(folder: Path, kind: str) -> str:
    path = folder / f"data.{kind}"
    match kind:
        case "csv":
            path.write_text(csv_text(ROWS))
        case "tsv":
            path.write_text(csv_text(ROWS).replace(",", "\t"))
        case "csv.gz":
            path.write_bytes(gzip.compress(csv_text(ROWS).encode()))
        case "jsonl":
            path.write_text("\n".join(map(json.dumps, objects(ROWS))))
        case "json":
            path.write_text(json.dumps(objects(ROWS)))
        case "parquet":
            parquet.write_table(pa.Table.from_pylist(objects(ROWS)), path)
    return path.name


def classifier(folder: Path, data: str, **changes: Any) -> Mapping[str, Any]:
    config = {"model_type": "bert", "max_position_embeddings": 64}
    document = {
        "task": "sequence-classification",
        "model": {"config": config},
        "dataset": data,
        "matrix": MATRIX,
    }
    return CompletedSuite(
        {**document, **changes}, stem="my suite", folder=folder, is_local=True
    ).document


@pytest.mark.parametrize("name", READ_FROM_DATA)
def test_a_shipped_suite_is_read_from_its_data(name: str) -> None:
    check_baseline(SUITES / f"{name}.yaml")


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "jsonl", "json", "parquet"])
def test_columns_labels_length_and_number_come_from_the_data(kind: str, tmp_path: Path) -> None:
    workload = classifier(tmp_path, write_data(tmp_path, kind))["workload"]
    assert (workload["dataset"]["text_column"], workload["dataset"]["label_column"]) == (
        "review",
        "sentiment",
    )
    assert (workload["label_count"], workload["examples"]) == (2, len(ROWS))
    assert (
        workload["sequence_length"] == 16
    )  # the longest text has 29 bytes: 9 tokens of 3 bytes, and two


@pytest.mark.parametrize(
    ("words", "changes", "told"),
    [
        # 60 rows of 8 bytes and 3 of 600: 64 positions hold 62 tokens of 4 bytes
        (150, {}, ["about 3 of 63 texts have more than 64 tokens, at 4 bytes each, and are cut"]),
        (150, {"sequence_length": 200}, []),
        (
            1,
            {"sequence_length": 3},
            ["about 60 of 63 texts have more than 3 tokens, at 4 bytes each, and are cut"],
        ),
    ],
)
@pytest.mark.parametrize("padding", [None, "training", "matrix"])
def test_cut_and_padded_rows_of_a_length_are_said(
    words: int, changes: dict[str, Any], told: list[str], padding: str | None, tmp_path: Path
) -> None:
    rows = [*[("abc def", "01"[n % 2]) for n in range(60)], *[("abc " * words, "1")] * 3]
    (tmp_path / "data.csv").write_text(csv_text(rows, "text,label"))
    if padding is not None:
        changes = {**changes, padding: {**MATRIX, "padding": "longest"}}
    completed = CompletedSuite(
        {
            "task": "sequence-classification",
            "model": {"config": {"model_type": "bert", "max_position_embeddings": 64}},
            "dataset": "data.csv",
            "matrix": MATRIX,
            **changes,
        },
        stem="suite",
        folder=tmp_path,
        is_local=True,
    )
    cut = [caution for caution in completed.cautions if "are cut" in caution]
    padded = [caution for caution in completed.cautions if "the rest is padding" in caution]
    assert cut == told
    assert len(padded) == (padding is None and words > 1)


def test_values_of_the_file_stay(tmp_path: Path) -> None:
    given_values = {
        "examples": 7,
        "sequence_length": 8,
        "label_count": 5,
        "name": "mine",
        "goal": "cheapest",
    }
    document = classifier(tmp_path, write_data(tmp_path, "csv"), **given_values)
    fields = {**document["workload"], **document}
    assert {name: fields[name] for name in given_values} == given_values


@pytest.mark.parametrize(
    ("header", "rows", "field", "told"),
    [
        (
            "title,body,label",
            [(f"a b c {n}", f"d e f {n},{n % 2}") for n in range(9)],
            "text_column",
            "title, body",
        ),
        (
            "text,a,b",
            [(f"a b c {n}", f"{n % 2},{n % 3}") for n in range(9)],
            "label_column",
            "a, b",
        ),
        ("text,id", [(f"a b c {n}", str(n)) for n in range(9)], "label_column", "text, id"),
    ],
)
def test_two_candidates_are_asked_for_by_name(
    header: str, rows: list[tuple[str, str]], field: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "data.csv").write_text(csv_text(rows, header))
    suite = {
        "task": "sequence-classification",
        "model": "nobody/bert",
        "dataset": "data.csv",
        "matrix": MATRIX,
    }
    path = tmp_path / "suite.yaml"
    path.write_text(yaml.safe_dump(suite, sort_keys=False))
    with pytest.raises(SuiteFileInvalid) as caught:
        load_startable_suite(path, local=True)
    assert f"suite.yaml:3: workload.dataset.{field}: got nothing" in str(caught.value)
    assert f"columns: {told}" in str(caught.value)


def causal_problem(folder: Path, rows: list[dict[str, Any]]) -> str:
    """What is said of the data's columns for causal-lm; without a problem the column."""
    (folder / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    document = {"task": "causal-lm", "model": {"config": {}}, "dataset": "data.jsonl"}
    completed = CompletedSuite(document, stem="a", folder=folder, is_local=True)
    told = [
        str(problem)
        for problem in completed.problems
        if problem.path.startswith("workload.dataset")
    ]
    return "\n".join(told) or str(completed.document["workload"]["dataset"]["text_column"])


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"review": LONG, "stars": 3, "day": "2026-01-01"}, "review"),
        ({"body": LONG, "reply": "no"}, "expected one of the data's columns: body, reply"),
        ({"body": LONG, "reply": LONG}, "expected one of the data's columns: body, reply"),
        ({"body": LONG, "replies": [LONG, "no"]}, "the data's columns: body, replies"),
        (
            {"messages": [{"role": "user", "content": "a"}]},
            "row 1: the conversation has no turn of",
        ),
        (
            {"messages": [{"role": "user", "content": ""}]},
            "data.jsonl, row 1: turn 1, of user, has",
        ),
        ({"prompt": LONG, "chosen": "yes", "rejected": "no"}, "pairs (chosen, rejected); with"),
        ({"question": LONG, "answer": "no"}, "questions with their answers (question, answer); w"),
        ({"dialog": json.dumps([{"role": "user", "content": LONG}])}, "got nothing, expected one"),
        ({"text": json.dumps([{"role": "user", "content": LONG}])}, "the turns of a chat as JSON"),
    ],
)
def test_a_column_is_chosen_only_without_another_one_of_texts(
    row: dict[str, Any], told: str, tmp_path: Path
) -> None:
    problem = causal_problem(tmp_path, [row] * 4)
    assert told in problem
    assert problem.count("\n") == 0


@pytest.mark.parametrize("form", CHAT_ROWS)
def test_conversations_are_found_by_their_columns(form: str, tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text("\n".join([json.dumps(CHAT_ROWS[form])] * 40))
    document = {"task": "causal-lm", "model": {"config": {}}, "dataset": "data.jsonl"}
    for packing, count in ((False, 40), (True, 40 * (len(LONG) + 2) // (4 * 128))):
        given = {**document, "sequence_length": 128, "training": {"packing": packing}}
        completed = CompletedSuite(given, stem="a", folder=tmp_path, is_local=True)
        assert completed.problems == []
        workload = completed.document["workload"]
        assert (workload["dataset"]["format"], workload["examples"]) == ("chat", count)
        assert f'format: "chat" (the data has {form})' in str(list(map(str, completed.defaults)))
    other = {**document, "task": "masked-lm"}
    told = CompletedSuite(other, stem="a", folder=tmp_path, is_local=True).problems
    assert "workload.task causal-lm with workload.dataset.format: chat" in str(told)


def test_data_of_texts_alone_is_told_to_have_no_labels(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("\n".join(["review", *(f"a b c {n}" for n in range(9))]))
    suite = {
        "task": "sequence-classification",
        "model": "nobody/bert",
        "dataset": "data.csv",
        "matrix": MATRIX,
    }
    with pytest.raises(
        SuiteInvalid,
        match="and review is the data's only column: a classifier needs one with labels",
    ):
        Suite.of(folder=tmp_path, local=True, **suite)


def test_a_column_is_named_as_the_data_has_it(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(
        csv_text(ROWS, "Text f\u00fcr Kunden,Stimmung (1\u20133)"), encoding="utf-8"
    )
    suite = {
        "task": "sequence-classification",
        "model": "nobody/bert",
        "dataset": "data.csv",
        "matrix": MATRIX,
    }
    lines = Suite.of(folder=tmp_path, local=True, **suite).lines
    assert any('label_column: "Stimmung (1\u20133)" (the only' in line for line in lines)


def test_a_column_missing_in_the_data_is_named_before_anything_runs(tmp_path: Path) -> None:
    write_data(tmp_path, "csv")
    with pytest.raises(
        SuiteFileInvalid, match='got "body", expected a column of the data: review, sentiment'
    ):
        Suite.from_text(
            "{task: sequence-classification, model: nobody/bert, matrix: {precision: [fp32, bf16]},"
            " dataset: {path: data.csv, text_column: body}}",
            folder=tmp_path,
            local=True,
        )


def test_a_language_models_examples_are_an_epoch_of_its_text(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("word " * 8000)
    config = {"model_type": "gpt2", "n_positions": 128}
    document = {"task": "causal-lm", "model": {"config": config}, "dataset": "data.txt"}
    workload = CompletedSuite(document, stem="a", folder=tmp_path, is_local=True).document[
        "workload"
    ]
    assert (workload["sequence_length"], workload["examples"]) == (128, 40_000 // (4 * 128))


def test_the_reason_of_a_length_names_its_bound(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("word " * 8000)
    config = {"model_type": "gpt2", "n_positions": 4096}
    document = {"task": "causal-lm", "model": {"config": config}, "dataset": "data.txt"}
    completed = CompletedSuite(document, stem="a", folder=tmp_path, is_local=True)
    told = [str(default) for default in completed.defaults]
    assert "workload.sequence_length: 1024 (at most 1024, the model has 4096 positions)" in told


def test_a_script_needs_its_source_arguments_and_examples(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "fit.py").write_text("print('x')")
    suite = Suite.of(
        folder=tmp_path,
        local=True,
        source="code",
        examples=1000,
        matrix={"hyperparameters.batch-size": [8, 32]},
    )
    assert suite.suite.workload.entry_point == "fit.py"
    assert {default.path for default in suite.defaults} >= {
        "workload.task",
        "training.instance",
        "limits.max_usd",
    }


def test_minutes_are_the_budget_of_the_whole_suite(tmp_path: Path) -> None:
    for minutes, seconds in (
        (10, 300),
        (60, 900),
    ):  # so short a job has to measure all cells of its first wave
        document = {"source": str(tmp_path), "limits": {"max_minutes": minutes}}
        completed = CompletedSuite(document, stem="a", folder=tmp_path, is_local=True)
        assert "of max_minutes, so that leaders run again" in str(completed.defaults[-1])
        assert completed.document["limits"] == {
            "max_hours": round(minutes / 60, 4),
            "max_usd": 1,
            "max_job_seconds": seconds,
        }


def test_labels_counted_from_1_have_a_class_for_0(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(
        csv_text([(f"a b c {n}", str(n % 5 + 1)) for n in range(20)])
    )
    suite = {"task": "sequence-classification", "model": "nobody/bert", "dataset": "data.csv"}
    suite_object = Suite.of(folder=tmp_path, local=True, **suite)
    assert suite_object.suite.workload.label_count == 6
    assert "the labels of data.csv are 1 to 5, and classes count from 0" in "\n".join(
        suite_object.lines
    )


def test_on_aws_type_and_amount_are_asked_for(tmp_path: Path) -> None:
    write_data(tmp_path, "csv")
    path = tmp_path / "suite.yaml"
    path.write_text("{task: sequence-classification, model: nobody/bert, dataset: data.csv}")
    with pytest.raises(SuiteFileInvalid) as caught:
        load_startable_suite(path)
    told = {problem.path for problem in caught.value.problems}
    assert told >= {"training.instance", "limits.max_usd", "limits.max_hours"}


def test_the_stored_suite_is_CompletedSuite() -> None:
    suite = load_startable_suite(SUITES / "own_model.yaml", local=True)
    again = Suite.of(folder=SUITES, **suite.document)
    assert again.suite == suite.suite
    assert again.defaults == ()


def test_the_page_shows_the_suite_and_its_defaults() -> None:
    page = (SUITES.parent / "docs" / "own-model.md").read_text()
    shown = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    assert shown[1].strip() in (SUITES / "own_model.yaml").read_text()
    suite = load_startable_suite(SUITES / "own_model.yaml", local=True)
    assert suite.lines == re.findall(r"^    ((?:default|caution).*)$", page, re.MULTILINE)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"dataset": "./missing.csv"},
            ["workload.dataset.path: './missing.csv' does not exist on this machine"],
        ),
        (
            {"dataset": "./missing.csv", "model": "./nowhere"},
            [
                "workload.dataset.path: './missing.csv' does not exist",
                "workload.model: './nowhere' does not exist",
            ],
        ),
        (
            {"dataset": None},
            ["workload.dataset: got nothing, expected a file or folder, an s3:// URI or a Hub id"],
        ),
        (
            {"dataset": "one.csv"},
            ["workload.label_count: got one label only in one.csv ('x'), expected at least two"],
        ),
        (
            {"dataset": "three.csv", "label_count": 2},
            [
                (
                    "workload.label_count: the data has 3 different labels (a, b, c); "
                    "workload.label_count says 2"
                )
            ],
        ),
        (
            {"dataset": "numbers.csv", "label_count": 2},
            [
                (
                    "workload.label_count: numbers.csv, row 3: the label is '2'; expected 0 to 1, "
                    "because workload.label"
                )
            ],
        ),
        (
            {
                "dataset": {
                    "path": "forms.csv",
                    "text_column": "review",
                    "label_column": "sentiment",
                },
                **ALL,
            },
            [
                (
                    r"workload.dataset.path: the labels 'caf\xe9' and 'cafe\u0301' are one text in "
                    r"two Unicode forms"
                )
            ],
        ),
        (
            {"dataset": "bars.csv"},
            [
                (
                    "workload.dataset.path: bars.csv has no column 'text'; its columns are "
                    "review|sentiment; a .csv"
                )
            ],
        ),
        ({"limits": {"max_minutes": 0}}, ["limits.max_minutes: got 0, expected a number above 0"]),
        (
            {"limits": {"max_minutes": 1, "max_hours": 1}},
            ["limits.max_minutes: got it beside max_hours"],
        ),
        ({"limits": {"max_hours": 0}}, ["limits.max_hours: got 0"]),
        (
            {
                "workload": {"task": "causal-lm"},
                "dataset": {"path": "data.csv", "text_column": "review"},
            },
            ["task: got it here and in workload, expected task in one of the two"],
        ),
    ],
)
def test_a_mistake_is_named_without_its_consequences(
    changes: dict[str, Any], told: list[str], tmp_path: Path
) -> None:
    write_data(tmp_path, "csv")
    (tmp_path / "one.csv").write_text(csv_text([(f"a b c {row}", "x") for row in range(9)]))
    (tmp_path / "bars.csv").write_text("review|sentiment\na b c|1\n")
    for name, labels in (
        ("three", "abc" * 3),
        ("numbers", "012" * 3),
        ("forms", ["caf\u00e9", "cafe\u0301"] * 5),
    ):
        (tmp_path / f"{name}.csv").write_text(csv_text([("a b c", label) for label in labels]))
    suite = {
        "task": "sequence-classification",
        "model": "nobody/bert",
        "dataset": "data.csv",
        "matrix": MATRIX,
        **changes,
    }
    with pytest.raises(SuiteFileInvalid) as caught:
        Suite.from_text(json.dumps(suite), folder=tmp_path, local=True)
    lines = [line.split(": ", 1)[1] for line in caught.value.lines]
    assert [line[: len(start)] for line, start in zip(lines, told, strict=True)] == told


def test_another_unicode_form_of_a_column_is_named(tmp_path: Path) -> None:
    rows = [("a b c", f"{row}.5") for row in range(20)]
    (tmp_path / "data.csv").write_text(csv_text(rows, header="review,cafe\u0301"))
    dataset = {"path": "data.csv", "text_column": "review", "label_column": "cafe\u0301"}
    suite = {"task": "sequence-classification", "model": "nobody/bert", "matrix": MATRIX}
    Suite.from_text(json.dumps({**suite, "dataset": dataset}), folder=tmp_path, local=True)
    composed = {**dataset, "label_column": "caf\u00e9"}
    with pytest.raises(SuiteFileInvalid, match="the same in another Unicode form"):
        Suite.from_text(json.dumps({**suite, "dataset": composed}), folder=tmp_path, local=True)


def test_a_source_without_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SuiteInvalid) as caught:
        Suite.of(
            folder=tmp_path,
            local=True,
            source="nowhere",
            examples=9,
            matrix={"hyperparameters.a": [1, 2]},
        )
    assert [problem.path for problem in caught.value.problems] == ["workload.source"]


def test_the_longest_sequence_comes_from_transformers_own_numbers() -> None:
    """Over every family whose configuration builds without arguments; where config.json names none,
    none is given.
    """
    known = 0
    for kind in CONFIG_MAPPING:
        with suppress(*NOT_BUILT, ImportError):
            config = CONFIG_MAPPING[kind]()
            positions = most_positions(config)
            length = longest_sequence(config.to_dict())
            if positions is None or length is None:
                continue
            assert needed_positions(config, length) == positions, kind
            known += 1
    assert known > 100


@pytest.mark.parametrize("column", [{}, {"text_column": "text"}])
@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"data.csv": "text,label\n"}, "data.csv has no rows"),
        ({"data.jsonl": '{"text": ""}\n'}, "data.jsonl has no text"),
        ({"a.txt": "", "b.txt": "\n"}, "a.txt, b.txt has no text"),
        ({"train.txt": "words", "test.txt": ""}, "test.txt has no text"),
        ({TOKENISED: "{}", "train/tokens.npy": ""}, None),
    ],
)
def test_data_without_a_text_is_refused_although_the_suite_says_all_of_it(
    files: dict[str, str], told: str | None, column: dict[str, str], tmp_path: Path
) -> None:
    for name, content in files.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    splits = {"evaluation_split": "test"} if "test.txt" in files else {}
    document = {
        "task": "causal-lm",
        "model": "nobody/gpt2",
        "examples": 9,
        "sequence_length": 16,
        "dataset": {"path": "data", **splits, **column},
        "matrix": MATRIX,
    }
    problems = CompletedSuite(document, stem="a", folder=tmp_path, is_local=True).problems
    assert [problem.message.partition(";")[0] for problem in problems] == [told] * bool(told)


def test_large_data_is_not_read_and_its_settings_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_data, "MOST_DATA_BYTES", 10)
    workload = classifier(tmp_path, write_data(tmp_path, "csv"))["workload"]
    assert not {"examples", "sequence_length"} & workload.keys()
