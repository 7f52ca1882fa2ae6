import time
from pathlib import Path

import pytest

from traindyno.api import suite_text
from traindyno.api.suite_text import SuiteUnreadable, read_suite_text


def write(folder: Path, text: str) -> Path:
    path = folder / "suite.yaml"
    path.write_text(text)
    return path


def test_every_path_knows_its_line(tmp_path: Path) -> None:
    suite = read_suite_text(
        write(
            tmp_path, "name: x\nmatrix:\n  instance_count: [1,\n    four]\ninclude:\n  - {a: 1}\n"
        )
    )
    assert suite.place("matrix.instance_count[1]").endswith("suite.yaml:4")
    assert suite.place("include[0].a").endswith(":6")
    # what is missing, by what is around it
    assert suite.place("matrix.compiler").endswith(":2")
    assert suite.place("goal").endswith(":1")


def test_numbers_are_numbers_and_words_are_words(tmp_path: Path) -> None:
    text = (
        "rate: 5e-5\n"
        "small: 1.0e-3\n"
        "count: 4\n"
        "flag: true\n"
        "word: on\n"
        "country: no\n"
        "day: 2026-11-21\n"
        "version: 1.8.1\n"
    )
    text += "mode: 0777\ntime: 1:30\nlarge: 1_000\nhex: 0x1F\nnegative: -3\nzero: 0\n"
    document = read_suite_text(write(tmp_path, text)).document
    assert document == {
        "rate": 5e-5,
        "small": 1e-3,
        "count": 4,
        "flag": True,
        "word": "on",
        "country": "no",
        "day": "2026-11-21",
        "version": "1.8.1",
        "mode": "0777",
        "time": "1:30",
        "large": 1000,
        "hex": 31,
        "negative": -3,
        "zero": 0,
    }
    assert isinstance(document["count"], int)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: [1, 2", r"suite\.yaml:1: not valid YAML"),
        ("name: a\nname: b\n", r"suite\.yaml:2: not valid YAML: the key 'name' is repeated"),
        ("just words", r"suite\.yaml:1: found a str; expected a mapping with task, model"),
        ("", r"found nothing"),
        (
            "a: !!python/object/apply:os.system [true]",
            r"suite\.yaml:1: not valid YAML: the tag .* is not one of plain YAML",
        ),
        ("a: 1\nb: " + "[" * 3000, r"suite\.yaml:2: not valid YAML: more than 100 levels"),
        ("a: &a [x, *a]", "not valid YAML: more than 50000 values, with aliases written out"),
        (
            "a: 1\nb: !!int word",
            r"suite\.yaml:2: not valid YAML: 'word' is not a value of type int",
        ),
        ("a: " + "9" * 5000, "is not a value of type int"),
        ("? [a, b]\n: c", "not valid YAML: a key is a list or a mapping"),
        ('a: "\\0"', "not valid YAML: the text contains NUL"),
        ('a: "\\ud800"', "not valid YAML: the text contains NUL or a lone surrogate"),
    ],
)
def test_text_without_a_suite_is_refused_with_its_line(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(SuiteUnreadable, match=says):
        read_suite_text(write(tmp_path, text))


def test_an_alias_bomb_is_refused_at_once(tmp_path: Path) -> None:
    levels = [
        f"l{number}: &l{number} [{', '.join([f'*l{number - 1}'] * 9)}]" for number in range(1, 10)
    ]
    path = write(tmp_path, "\n".join(["l0: &l0 [x, x, x]", *levels]))
    began = time.monotonic()
    with pytest.raises(SuiteUnreadable, match="more than 50000 values, with aliases written out"):
        read_suite_text(path)
    assert time.monotonic() - began < 5


def test_a_text_with_too_many_values_is_refused_before_its_rest_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite_text, "MOST_VALUES", 100)
    path = write(tmp_path, "a: [\n" + "1,\n" * 200 + "}")  # the rest has an error of its own
    with pytest.raises(
        SuiteUnreadable, match=r"suite\.yaml:99: not valid YAML: more than 100 values"
    ):
        read_suite_text(path)


def test_an_alias_stands_for_its_anchor(tmp_path: Path) -> None:
    suite = read_suite_text(write(tmp_path, "a: &a {x: 1}\nb: *a\nc:\n  <<: *a\n  y: 2\n"))
    assert suite.document == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}


def test_an_endless_file_is_refused() -> None:
    with pytest.raises(SuiteUnreadable, match="more than 10 MiB of text"):
        read_suite_text(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("asked", "is_near"), [("quikstart.yaml", True), ("quickstart.yml", True), ("x.yaml", False)]
)
def test_a_mistyped_file_gets_the_near_name_beside_it(
    tmp_path: Path, asked: str, is_near: bool
) -> None:
    (tmp_path / "quickstart.yaml").write_text("task: causal-lm")
    with pytest.raises(SuiteUnreadable, match=r"can't be read: No such file.*xpected a YAML") as no:
        read_suite_text(tmp_path / asked)
    assert ('did you mean "quickstart.yaml"?' in str(no.value)) is is_near
    with pytest.raises(SuiteUnreadable, match=r"can't be read: No such file"):
        read_suite_text(tmp_path / "nowhere" / asked)
