"""What an argument or option may be.

Each check refuses another value by what was found and what is accepted, before the command reads or
starts anything.
"""

import os
import re
from collections.abc import Callable
from difflib import get_close_matches
from math import isfinite
from pathlib import Path

import typer

from traindyno.aws.executions import EXECUTION_NAME, EXECUTION_NAME_RULE
from traindyno.aws.regions import known_profiles, known_regions
from traindyno.callbacks.full_disk import is_disk_full
from traindyno.core.documents.problems import close_to, one_of, refusal, shown
from traindyno.core.lab_names import LAB_NAME, LAB_NAME_RULE, NO_OTHER_PARTITION, OTHER_PARTITIONS
from traindyno.core.serving.deployment import NAME

Check = Callable[[str | None], str | None]
# What Step Functions accepts, because an execution may be started in its console.
ANY_EXECUTION = re.compile(r"[^\s\x00-\x1f\x7f-\x9f<>{}\[\]?*\"#%\\^|~`$&,;:/]{1,80}")
ANY_EXECUTION_RULE = (
    '1 to 80 characters, none of them a space or one of <>{}[]?*"#%\\^|~`$&,;:/, as `traindyno '
    "list` shows it"
)
SHARE = re.compile(r"(?P<number>\d{1,3}(\.\d{1,9})?) ?(?P<percent>%)?")
JOB_RULE = "1 to 63 letters, digits and hyphens that begin and end with a letter or digit"


def matching(pattern: re.Pattern[str], expected: str) -> Check:
    """The check of a text that may be missing."""

    def check(value: str | None) -> str | None:
        return _matched(value, pattern, expected)

    return check


def _matched(value: str | None, pattern: re.Pattern[str], expected: str) -> str | None:
    if value is not None and not pattern.fullmatch(value):
        raise refused(value, expected)
    return value


def refused(value: object, expected: str, meant: list[str] | None = None) -> typer.BadParameter:
    return typer.BadParameter(refusal(f"got {shown(value)}", expected, meant or ()))


def in_our_words(error: typer.TyperException) -> str:
    """The message of a refused value; for one of the wrong type or beyond a bound, Typer's does not
    say the value.
    """
    problems = getattr(
        error.__cause__, "errors", None
    )  # pydantic's, which Typer converts values with
    if problems is None:
        return error.message
    problem = problems()[0]
    match problem["type"]:
        case "int_parsing" | "int_parsing_size":
            expected = "an integer"
        case "float_parsing":
            expected = "a number"
        case "greater_than_equal":
            expected = f"at least {problem['ctx']['ge']:g}"
        case "less_than_equal":
            expected = f"at most {problem['ctx']['le']:g}"
        case _:  # a choice, whose message has the value and the choices
            return error.message.removeprefix("Value error, ")
    return refusal(f"got {shown(problem['input'])}", expected)


def lab_name(value: str | None) -> str | None:
    return _matched(value, LAB_NAME, LAB_NAME_RULE)


def execution_name(value: str | None) -> str | None:
    return _matched(value, ANY_EXECUTION, ANY_EXECUTION_RULE)


def new_execution_name(value: str | None) -> str | None:
    return _matched(value, EXECUTION_NAME, EXECUTION_NAME_RULE)


def job_name(value: str | None) -> str | None:
    return _matched(value, NAME, JOB_RULE)


def region(value: str | None) -> str | None:
    if value is not None and value not in known_regions():
        if value.startswith(OTHER_PARTITIONS):
            raise refused(value, NO_OTHER_PARTITION)
        swapped = {
            value[:at] + value[at : at + 2][::-1] + value[at + 2 :] for at in range(len(value))
        }
        meant = [name for name in known_regions() if name in swapped]
        meant = meant or get_close_matches(value, known_regions(), n=1, cutoff=0.7)
        raise refused(value, f"an AWS region with SageMaker: {one_of(known_regions())}", meant)
    return value


def profile(value: str | None) -> str | None:
    if value is None:
        return None
    profiles = known_profiles()
    if value in profiles:
        return value
    expected = (
        f"a profile of your AWS settings: {one_of(profiles)}"
        if profiles
        else (
            "a profile of your AWS settings, which have none; make one with: aws configure "
            "--profile NAME"
        )
    )
    raise refused(value, expected, close_to(value, profiles))


def share(value: str | None) -> str | None:
    """A share below 1, as ``3 %`` or as ``0.03``; returned as a number's text."""
    if value is None:
        return None
    match = SHARE.fullmatch(value)
    if match is None or float(match["number"]) >= (100 if match["percent"] else 1):
        raise refused(value, "a share of 0 to less than 1, such as '3 %' or 0.03")
    number = float(match["number"])
    return str(number / 100 if match["percent"] else number)


def finite(value: float | None) -> float | None:
    if value is not None and not isfinite(value):
        raise typer.BadParameter(f"got {value}, expected a finite number")
    return value


def existing_paths(paths: list[Path] | None) -> list[Path] | None:
    for path in paths or ():
        if not os.path.exists(path):  # noqa: PTH110  (Path.exists raises for a name that is too long)
            raise typer.BadParameter(
                f"{path} does not exist on this machine; accepted: a file or a folder"
            )
    return paths


def folder_to_write(value: Path) -> Path:
    """A folder that exists or can be made."""
    existing = next(
        path for path in (value.absolute(), *value.absolute().parents) if os.path.lexists(path)
    )
    if not existing.is_dir():
        raise typer.BadParameter(
            f"got {value}, but {existing} is a file; expected a folder, which may be new"
        )
    return value


def refuse_unwritable(output: Path, name: str) -> None:
    """Refuse a place where no new file can be made, before anything is done.

    ``name`` is the option's. Raises BadParameter.
    """
    if not os.path.isdir(output.parent):  # noqa: PTH112  (Path.is_dir raises for a name that is too long)
        raise typer.BadParameter(
            f"got {output}, expected a file in a folder that exists", param_hint=name
        )
    try:
        output.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unwritable(output, error, name) from error
    raise typer.BadParameter(f"{output} exists, expected the name of a new file", param_hint=name)


def write_new(output: Path, text: str, name: str) -> None:
    """Raises BadParameter, and never replaces a file."""
    refuse_unwritable(output, name)
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        if is_disk_full(error):
            raise
        raise _unwritable(output, error, name) from error


def _unwritable(output: Path, error: OSError, name: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"{output} can't be written ({error.strerror}), expected a new file", param_hint=name
    )
