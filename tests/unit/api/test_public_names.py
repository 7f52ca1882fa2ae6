"""The names and signatures that programs use are those of a list, which a change has to edit on
purpose.
"""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import traindyno
from traindyno import TraindynoError

ROOT = Path(__file__).parents[3]
NAMES = sorted(vars(traindyno)["_API"])
LISTED = (ROOT / "tests" / "data" / "python_interface.txt").read_text().splitlines()


def test_names_and_signatures_are_the_listed_ones() -> None:
    """If this fails, keep the old form working; or edit the list: CHANGELOG.md says what a program
    has to change.
    """
    assert list(interface()) == LISTED


def interface() -> Iterator[str]:
    for name in NAMES:
        value = getattr(traindyno, name)
        yield f"{name}{signature(value)}"
        if inspect.isclass(value):
            for member, attribute in sorted(vars(value).items()):
                plain = attribute.__func__ if isinstance(attribute, classmethod) else attribute
                if not member.startswith("_"):
                    yield f"{name}.{member}{signature(plain) if inspect.isfunction(plain) else ''}"


def signature(value: object) -> str:
    if isinstance(value, type) and issubclass(value, Exception):
        return ""
    described = inspect.signature(value)  # type: ignore[arg-type]
    return str(
        described.replace(
            return_annotation=inspect.Signature.empty,
            parameters=[
                parameter.replace(
                    annotation=inspect.Parameter.empty,
                    default=parameter.default
                    if parameter.default is inspect.Parameter.empty
                    else Default(),
                )
                for parameter in described.parameters.values()
            ],
        )
    )


class Default:
    def __repr__(self) -> str:
        return "…"


def test_the_package_its_types_and_the_page_have_the_same_names() -> None:
    stub = (ROOT / "traindyno" / "__init__.pyi").read_text()
    typed = re.findall(r"from (\S+) import (\w+) as (\w+)", stub)
    assert sorted(name for _, *names in typed for name in names) == sorted(NAMES * 2)
    section = (ROOT / "docs" / "python.md").read_text().split("## Names")[1].partition("\n## ")[0]
    paragraph, _, table = section.partition("| error |")
    listed = re.findall(r"`(\w+)`", paragraph) + re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
    assert sorted(listed) == NAMES
    modules = {name: f"traindyno.{module}" for name, module in vars(traindyno)["_API"].items()}
    assert {name: module for module, name, _ in typed} == modules
    for name in NAMES:
        exported = getattr(traindyno, name)
        assert (exported.__name__, exported.__module__) == (name, modules[name])


def test_a_listing_of_the_package_shows_its_names() -> None:
    assert {*NAMES, "__version__"} <= {*dir(traindyno)}


def test_a_program_can_catch_each_promised_error_of_a_public_name() -> None:
    """By its own name; the page lists all of them with what they mean."""
    promised: set[str] = set()
    for name in NAMES:
        value = getattr(traindyno, name)
        for documented in (value, *(vars(value).values() if inspect.isclass(value) else ())):
            said = inspect.getdoc(getattr(documented, "__func__", documented)) or ""
            promised |= {
                word
                for text in said.split("Raises")[1:]
                for word in re.findall(r"[A-Z][a-z]+[A-Z]\w+", text)
            }
    assert {"LabNotDeployed", "StagingRefused", "ExecutionUnknown"} <= promised
    assert promised - {"DescribeTrainingJob"} <= {*NAMES}
    table = (ROOT / "docs" / "python.md").read_text().partition("| error |")[2]
    caught = {name for name in NAMES if is_error(getattr(traindyno, name))}
    assert {
        word for row in table.splitlines() for word in re.findall(r"^\| `(\w+)`", row)
    } == caught - {"TraindynoError"}


def is_error(value: object) -> bool:
    return inspect.isclass(value) and TraindynoError in value.__mro__


def test_the_package_alone_imports_nothing_and_has_no_other_names() -> None:
    """Containers and functions import it, and most of them have no traindyno/api."""
    code = (
        "import sys, traindyno; assert not hasattr(traindyno, 'reprot')\n"
        "dir(traindyno)\n"
        "print([name for name in sys.modules if name.startswith(('traindyno.', 'boto3'))])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
