"""A bad value of any argument or option of any command is refused by its name, what was found and
what is accepted, with exit status 2, before any file, process or request.
"""

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import boto3
import pytest
import typer
import yaml

from tests.unit.slices.test_claims import TRAINIUM
from tests.unit.suites import script_document
from traindyno.aws import clients
from traindyno.cli.main import app, commands

LONG = "a" * 200
NAMES = ("a b", "", "a/b", "../a", "a\nb", LONG)
LAB_NAMES = (*NAMES, "-a", "Mine", "a--b", "naïve")
TEXTS = {
    **dict.fromkeys(("execution", "first", "second", "continues"), NAMES),
    **dict.fromkeys(("job", "name"), (*NAMES, "naïve", "-a")),
    "lab": LAB_NAMES,
    **dict.fromkeys(("region", "price_region"), ("mars-1", "", "us-east-11", "us east 1", LONG)),
    "profile": ("nobody", "", LONG),
    "cell": ("",),
    "source": (*NAMES, "missing/suite.yaml"),
    "set_": ("x", "", "=1"),
    "instance": ("g5", "", "ml.g5.huge", "ml.trn1.2xlarge", LONG),
    # The training libraries read which columns there are: tests/training/test_init_command.py
    **dict.fromkeys(("text_column", "label_column"), ("",)),
    "chat_template": ("missing/file.jinja",),
    **dict.fromkeys(("model", "data", "script"), ("", "missing/file.csv", "sample:nothing")),
}
COLUMN_NAMES = ("", "missing", LONG)
TEXTS |= dict.fromkeys(("value", "block", "host", "order"), COLUMN_NAMES)
TEXTS["tolerance"] = ("x", "", "nan", "-1", "3", "100 %", "1e-2 %")
INTEGERS = ("x", "", "1.5", "1e400", "-1", "9" * 5000)
NUMBERS = ("x", "", "nan", "inf", "-inf", "1e400", "-1")
CHOICES = ("x", "", "TABLE ")
# What is no suite, no file of prices and so on: the file's name → its content.
CONTENTS = {
    "empty": b"",
    "list": b"- 1\n- 2\n",
    "number": b"1e400\n",
    "latin": "name: naïve\n".encode("latin-1"),
    "nul": b"name: \0\n",
    "unclosed": b"name: [1\n",
    "other": b"colour: red\n",
}
LONG_NAME = LONG * 30
PATHS = {
    **dict.fromkeys(
        ("suite", "prices", "quotas", "file"), (".", "missing/file", LONG_NAME, *CONTENTS)
    ),
    "also_send": ("missing/file", LONG_NAME),
    "trials": ("missing/file", LONG_NAME, *CONTENTS),
    "traces": ("missing/file", "other", "."),
    "folder": ("other", "other/below"),
    "output": ("other", "missing/new.yaml", "."),
}
# The arguments that a command needs beside the one with the bad value, and the options that others
# need.
GOOD = {
    **{
        "suite": "good.yaml",
        "file": str(TRAINIUM),
        "execution": "exec-1",
        "first": "exec-1",
        "second": "exec-2",
        "trials": "trials.csv",
    },
    **{"job": "job-1", "name": "endpoint-1", "source": "exec-1"},
}
BESIDE = {
    **dict.fromkeys(
        (
            ("judge", name)
            for name in ("trials", "block", "host", "order", "better", "tolerance", "output")
        ),
        ("--value=seconds", "--cell=config"),
    ),
    ("judge", "value"): ("--cell=config",),
    ("judge", "cell"): ("--value=seconds",),
    **{("doctor", name): ("--aws",) for name in ("lab", "region", "profile")},
    **{("claims", name): ("exec-1",) for name in ("lab", "region", "profile")},
    **dict.fromkeys(
        (("init", "prices"), ("init", "quotas")),
        (
            "--task=causal-lm",
            "--model=a/b",
            "--data=a/b",
            "--examples=9",
            "--sequence-length=8",
            "--max-usd=5",
        ),
    ),
    **dict.fromkeys(
        (("init", "text_column"), ("init", "label_column"), ("init", "chat_template")),
        ("--task=sequence-classification", "--model=a/b", "--data=reviews.csv", "--max-usd=5"),
    ),
}
ACCEPTED = re.compile(
    r"[Ee]xpected|accepted:|at least|at most|not one of|exists, |did you mean|does not exist|not "
    r"valid YAML"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command line in which the argument or option of this name has this value."""

    words: tuple[str, ...]
    name: str
    value: str

    def __str__(self) -> str:
        return f"{' '.join(self.words)[:60]!r}"


def leaves(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, *words, name)
    if not hasattr(command, "commands"):
        yield words, command


def bad_values(parameter: Any) -> tuple[str, ...]:
    """A parameter of a new name and of type text or path has to be in the tables above."""
    annotation = parameter.type_descriptor.annotation
    (kind,) = get_args(annotation) or (annotation,)  # of a list, what is in it
    if kind is bool:
        return ()
    if kind in (int, float):
        beyond = () if parameter.max is None else (str(parameter.max * 2),)
        return (
            *(INTEGERS if kind is int else NUMBERS),
            *beyond,
            *(("0",) if parameter.min else ()),
        )
    if issubclass(kind, Enum):
        return CHOICES
    return (PATHS if kind is Path else TEXTS)[parameter.name]


def cases() -> Iterator[Case]:
    """All values for the first command that has a parameter, one for each command that shares
    it.
    """
    seen = set()
    for words, command in leaves(typer.main.get_command(commands)):
        arguments = [
            argument
            for argument in command.params
            if argument.param_type_name == "argument" and argument.required
        ]
        good = {argument.name: GOOD[argument.name] for argument in arguments}
        for parameter in command.params:
            values = bad_values(parameter)
            shared = (parameter.opts[0], parameter.help, values)
            for value in values[:1] if shared in seen else values:
                beside = BESIDE.get((words[0], parameter.name), ())
                if parameter.param_type_name == "argument":
                    given = [*beside, "--", *{**good, parameter.name: value}.values()]
                else:
                    given = [*good.values(), *beside, f"{parameter.opts[0]}={value}"]
                yield Case(words=(*words, *given), name=parameter.opts[0], value=value)
            seen.add(shared)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("here")
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content)
    (folder / "trials.csv").write_text("config,seconds\na,1\na,2\nb,3\nb,4\n")
    (folder / "reviews.csv").write_text("text,label\ngood,1\nbad,0\n")
    (folder / "good.yaml").write_text(yaml.safe_dump(script_document()))
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setenv("HOME", str(folder))
        patched.setenv("TRAINDYNO_HOME", str(folder / "home"))
        patched.setenv("COLUMNS", "2000")
        for name in [name for name in os.environ if name.startswith(("AWS_", "TRAINDYNO_LAB"))]:
            patched.delenv(name)
        patched.setattr(boto3, "DEFAULT_SESSION", None)
        clients.forget()
        yield folder
    clients.forget()


class Acted(BaseException):
    """The command acted on a value that it should refuse."""


def act(*what: Any, **_: Any) -> Any:
    raise Acted(str(what)[:300])


@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_bad_value_is_named_with_the_accepted_ones_and_nothing_is_done(
    case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.rglob("*"))
    monkeypatch.setattr("sys.argv", ["traindyno", *case.words])
    monkeypatch.setattr(socket.socket, "connect", act)
    monkeypatch.setattr(socket, "getaddrinfo", act)
    monkeypatch.setattr(subprocess, "Popen", act)
    with pytest.raises(SystemExit) as left:
        app()
    said = " ".join(capsys.readouterr().err.replace("│", "").split()).rpartition(" Error ─")[2]
    assert left.value.code == 2, said
    text = " ".join(case.value.replace("\n", r"\n")[:40].split())
    assert (str(float("inf")) if text == "1e400" and "finite" in said else text) in said
    field = case.name.lstrip("-").replace("-", "_")
    assert case.name in said or f".{field}: " in said or text in said.partition(":")[0], (
        "the option, field or file"
    )
    assert ACCEPTED.search(said), said
    assert sorted(folder.rglob("*")) == before
