"""A suite from a file, from text and from Python values is the same suite, with the same problems;
with the claims file that it names it is one document, which is all that travels.
"""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.sentences import Snapshot
from tests.unit.core.suite.test_suite_file import CLAIMS
from tests.unit.suites import small_document
from traindyno.api.local_paths import find_path_problems
from traindyno.api.suite_loading import Suite, SuiteFileInvalid, check_startable, load_suite
from traindyno.api.suite_text import SuiteUnreadable
from traindyno.core.errors import SuiteInvalid
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.features import FEATURES

DAMAGED = {**small_document(), "goal": "quickest", "limits": {"max_usd": "much"}, "mattrix": {}}


def problems_of(make: Any) -> list[str]:
    with pytest.raises(SuiteInvalid) as refused:
        make()
    return [str(problem) for problem in refused.value.problems]


def test_three_ways_to_one_suite(tmp_path: Path) -> None:
    text = yaml.safe_dump(small_document())
    (tmp_path / "suite.yaml").write_text(text)
    suites = [
        Suite.from_file(tmp_path / "suite.yaml"),
        Suite.from_text(text),
        Suite.of(**small_document()),
    ]
    assert [suite.document for suite in suites] == [small_document()] * 3
    assert suites[0].suite == suites[1].suite == suites[2].suite


def test_all_problems_come_at_once_in_each_way(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(yaml.safe_dump(DAMAGED))
    in_code = problems_of(lambda: Suite.of(**DAMAGED))
    assert len(in_code) >= 4
    assert (
        problems_of(lambda: Suite.from_file(path))
        == problems_of(lambda: Suite.from_text(path.read_text()))
        == in_code
    )


def test_problems_of_a_text_name_its_lines() -> None:
    with pytest.raises(SuiteInvalid) as refused:
        Suite.from_text(json.dumps(DAMAGED, indent=1))
    assert all(line.startswith("<text>:") for line in str(refused.value).splitlines())
    with pytest.raises(SuiteUnreadable, match=r"^<text>:1: found a list;"):
        Suite.from_text("[1, 2]")


def test_python_values_become_json_values() -> None:
    """The state machine receives JSON: a tuple is a list there, a path its text, a Decimal a
    number."""
    changed = small_document(matrix={"compiler": ("none", "inductor")})
    changed["workload"]["dataset"] = {"path": Path("s3:/x").with_name("data.txt")}
    changed["limits"] = {**changed["limits"], "max_usd": Decimal("1.10")}
    suite = Suite.of(**changed)
    assert suite.suite.limits.max_usd == Decimal("1.1")
    assert suite.document["matrix"] == {"compiler": ["none", "inductor"]}
    assert suite.document["workload"]["dataset"] == {"path": "s3:/data.txt"}
    assert (
        "a value has no JSON form"
        in problems_of(lambda: Suite.of(**small_document(goal=object())))[0]
    )


def test_relative_paths_start_at_the_folder_of_the_suite(tmp_path: Path) -> None:
    workload = {**small_document()["workload"], "dataset": {"path": "./data.txt"}}
    suite = Suite.of(folder=tmp_path, **small_document(workload=workload))
    (problem,) = problems_of(lambda: check_startable(suite))
    assert problem.startswith(
        "workload.dataset.path: './data.txt' does not exist on this machine, where it would be "
        f"{tmp_path}"
    )
    (tmp_path / "data.txt").write_text("a line\n")
    check_startable(suite)


def write(folder: Path, claims: Any, **changes: Any) -> Path:
    (folder / "published").mkdir()
    (folder / "published" / "post.yaml").write_text(yaml.safe_dump(claims))
    path = folder / "suite.yaml"
    path.write_text(
        yaml.safe_dump(
            {**small_document(**changes), "claims": "published/post.yaml"}, sort_keys=False
        )
    )
    return path


def test_an_unknown_field_is_told_with_the_names_of_the_short_form(tmp_path: Path) -> None:
    short = (
        "{task: causal-lm, modell: gpt2, dataset: a.txt, learning_rate: 1, matrix: {seed: [1, "
        "2]}, examples: 9}"
    )
    with pytest.raises(SuiteInvalid) as caught:
        Suite.from_text(short, folder=tmp_path, local=True)
    told = {problem.path: problem.message for problem in caught.value.problems}
    assert told["modell"].startswith(
        'unknown field "modell": did you mean "model"? Expected one of task, examples, model'
    )
    assert told["learning_rate"].startswith(
        'unknown field "learning_rate": did you mean "training.learning_rate"?'
    )


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["model.safetensors"],
        ["run-5/config.json", "run-9/config.json"],
        ["adapter_config.json", "config.json"],
        ["config.json", "a.Q4_K_M.gguf"],
    ],
)
def test_a_folder_without_a_model_is_told_by_its_contents(
    snapshot: Snapshot, names: list[str], tmp_path: Path
) -> None:
    for path in (tmp_path / "model" / name for name in names):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    (tmp_path / "model").mkdir(exist_ok=True)
    (tmp_path / "a.txt").write_text("text")
    workload = {**small_document()["workload"], "model": "./model", "dataset": {"path": "a.txt"}}
    suite = Suite.of(folder=tmp_path, **small_document(workload=workload))
    snapshot(problems_of(lambda: check_startable(suite)))


def test_an_adapter_is_told_with_its_base_and_how_it_is_merged(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "adapter_config.json").write_text(
        '{"base_model_name_or_path": "meta-llama/Llama-3.2-1B"}'
    )
    (tmp_path / "a.txt").write_text("text")
    workload = {**small_document()["workload"], "model": "./model", "dataset": {"path": "a.txt"}}
    suite = Suite.of(folder=tmp_path, **small_document(workload=workload))
    (problem,) = problems_of(lambda: check_startable(suite))
    assert "an adapter of meta-llama/Llama-3.2-1B (adapter_config.json)" in problem
    assert 'from_pretrained("./model").merge_and_unload().save_pretrained("merged")' in problem


@pytest.mark.parametrize(
    ("workload", "says"),
    [
        (
            {"dataset": {"path": "none.csv"}},
            "workload.dataset.path: 'none.csv' does not exist on this machine",
        ),
        ({"dataset": {"path": "none.jsonl.gz"}}, "'none.jsonl.gz' does not exist on this machine"),
        (
            {"channels": {"images": "./pictures"}},
            "workload.channels.images: './pictures' does not exist",
        ),
        ({"channels": {"extra": "x"}}, "workload.channels.extra: 'x' does not exist"),
        ({"model": ""}, "workload.model: '' does not exist"),
        ({"model": "s3://"}, 'workload.model: got "s3://", expected s3://BUCKET/PREFIX'),
        (
            {"dataset": {"path": "sample:moon"}},
            "'sample:moon' is not a sample; accepted: sample:python-standard",
        ),
        ({"model": "./none"}, "workload.model: './none' does not exist"),
        (
            {"source": "nowhere"},
            "nowhere is not a folder; accepted: a folder, or a tarball's s3:// URI",
        ),
        ({"source": ".", "entry_point": "tran.py"}, "workload.entry_point: 'tran.py' is not in"),
    ],
)
def test_missing_files_of_this_machine_are_named(
    workload: dict[str, Any], says: str, tmp_path: Path
) -> None:
    (problem,) = find_path_problems(workload, tmp_path)
    assert says in str(problem)


@pytest.mark.parametrize(
    ("argument", "values", "told"),
    [
        (
            "'--flag', type=bool",
            [True, False],
            "got false for an argument with type=bool, which is True for every",
        ),
        (
            "'--flag', action='store_true'",
            [True],
            "got a value for a switch ('store_true'), which takes none",
        ),
        ("'--flag', type=str", [True, False], None),
        ("'--flag', type=bool", [True], None),
    ],
)
def test_an_argument_misread_by_argparse_is_refused(
    argument: str, values: list[bool], told: str | None, tmp_path: Path
) -> None:
    program = (
        f"import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument({argument})\n"
    )
    (tmp_path / "train.py").write_text(program)
    matrix = {"hyperparameters.flag": values}
    suite = Suite.of(folder=tmp_path, local=True, source=str(tmp_path), examples=9, matrix=matrix)
    if told is None:
        check_startable(suite)
        return
    (problem,) = problems_of(lambda: check_startable(suite))
    assert problem.startswith(f"matrix.hyperparameters.flag: {told}")


@pytest.mark.parametrize(
    ("name", "channel"), [("dataset", "train"), ("model", "model"), ("tokenizer", "model")]
)
def test_a_script_gets_no_files_from_the_hub(name: str, channel: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    given = {"source": str(tmp_path), "examples": 9, name: {"path": "data/flower"}}
    suite = Suite.of(folder=tmp_path, local=True, **given)
    (problem,) = problems_of(lambda: check_startable(suite))
    assert problem.startswith(
        f'workload.{name}: got "data/flower", expected a path on this machine or an S3 URI, which '
        f"the script gets as the channel {channel}"
    )
    (tmp_path / "data" / "flower").mkdir(parents=True)
    check_startable(suite)


def test_the_claims_file_stands_in_the_travelling_document(tmp_path: Path) -> None:
    loaded = load_suite(write(tmp_path, CLAIMS))
    assert loaded.document["claims"] == CLAIMS
    assert parse_suite(loaded.document, FEATURES) == loaded.suite


def test_problems_of_a_claims_file_are_told_with_those_of_the_suite(tmp_path: Path) -> None:
    path = write(tmp_path, {**CLAIMS, "titel": "x"}, measurement={"trials": 0})
    line = path.read_text().splitlines().index("claims: published/post.yaml") + 1
    with pytest.raises(SuiteFileInvalid) as caught:
        load_suite(path)
    told = str(caught.value)
    assert "measurement.trials" in told
    assert f"suite.yaml:{line}: claims.titel: unknown field" in told


def test_a_field_at_the_top_instead_of_its_section_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(
        yaml.safe_dump({**small_document(), "confirm": {"minutes": "long"}}, sort_keys=False)
    )
    line = path.read_text().splitlines().index("  minutes: long") + 1
    with pytest.raises(
        SuiteFileInvalid, match=rf"suite\.yaml:{line}: measurement\.confirm\.minutes: got"
    ):
        load_suite(path)


@pytest.mark.parametrize("named", ["/dev/zero", ".", "post.yaml"])
def test_a_claims_path_without_a_file_is_refused_with_its_line(tmp_path: Path, named: str) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(yaml.safe_dump({**small_document(), "claims": named}, sort_keys=False))
    with pytest.raises(SuiteFileInvalid, match=r"(?s)suite\.yaml:\d+: claims: .* is no file"):
        load_suite(path)
