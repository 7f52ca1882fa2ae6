"""The names and signatures that programs use are those of a list, which a change has to edit on purpose."""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import traindyno
from traindyno import api

ROOT = Path(__file__).parents[3]
LISTED = (ROOT / "tests" / "data" / "python_interface.txt").read_text().splitlines()


def test_names_and_signatures_are_the_listed_ones() -> None:
    """If this fails, keep the old form working; or edit the list: CHANGELOG.md says what a program has to change."""
    assert list(interface()) == LISTED


def interface() -> Iterator[str]:
    for name in sorted(api.__all__):
        value = getattr(api, name)
        yield f"{name}{signature(value)}"
        if inspect.isclass(value):
            for member, found in sorted(vars(value).items()):
                plain = found.__func__ if isinstance(found, classmethod) else found
                if not member.startswith("_"):
                    yield f"{name}.{member}{signature(plain) if inspect.isfunction(plain) else ''}"


def signature(value: object) -> str:
    if isinstance(value, type) and issubclass(value, Exception):
        return ""
    found = inspect.signature(value)  # type: ignore[arg-type]
    return str(
        found.replace(
            return_annotation=inspect.Signature.empty,
            parameters=[
                each.replace(
                    annotation=inspect.Parameter.empty,
                    default=each.default if each.default is inspect.Parameter.empty else Default(),
                )
                for each in found.parameters.values()
            ],
        )
    )


class Default:
    def __repr__(self) -> str:
        return "…"


def test_the_package_its_types_and_the_page_have_the_same_names() -> None:
    names = sorted(api.__all__)
    assert sorted(vars(traindyno)["_API"]) == names
    stub = (ROOT / "traindyno" / "__init__.pyi").read_text()
    assert sorted(re.findall(r"import \w+ as (\w+)", stub)) == names
    listed = (ROOT / "docs" / "python.md").read_text().split("## Names")[1].partition("which all errors")[0]
    assert sorted(re.findall(r"`(\w+)`", listed)) == names
    assert {name: getattr(traindyno, name) for name in names} == {name: getattr(api, name) for name in names}


def test_the_package_alone_imports_nothing_and_has_no_other_names() -> None:
    """Containers and functions import it, and most of them have no traindyno/api."""
    code = (
        "import sys, traindyno; assert not hasattr(traindyno, 'reprot')\n"
        "print([name for name in sys.modules if name.startswith(('traindyno.', 'boto3'))])"
    )
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
