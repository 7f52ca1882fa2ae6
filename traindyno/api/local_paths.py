"""The paths of a suite that name something on this machine: what is wrong with them, and what of
them travels.
"""

import ast
import os
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from traindyno.api import sample_data
from traindyno.core.documents.problems import close_to, refusal, shown, visible
from traindyno.core.errors import Problem, TraindynoError
from traindyno.core.run.data_formats import is_hub_name
from traindyno.core.run.workload import CHANNELS, workload_paths
from traindyno.core.s3_keys import S3_SCHEME, is_s3_uri
from traindyno.core.suite.arguments import arguments_of
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Suite
from traindyno.travelling_files import Travelling, find_travelling, travelling_data

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
MOST_POINTER_BYTES = 1024
MOST_FILES_LOOKED_AT = 10_000
LONGEST_SHOWN = 200
# Names of files have their suffix in common.
LEAST_ALIKE = 0.7
OFF = ("false", "0", "no", "off")
# A built-in task loads them; a script may go on with the training of what it gets.
PRETRAINED = ("tokenizer", "model")
# In a program that writes the step log
LOGS_STEPS = b"traindyno"


class StagingRefused(TraindynoError):
    """A local file that the suite names would not travel, or there is none to send."""


def find_local(path: str, beside: Path) -> Path | None:
    """The file or folder of this machine; None for an S3 URI, a Hub id, and a path that does not
    exist.
    """
    if is_s3_uri(path) or not path:
        return None
    local = expanded(path, beside)
    try:
        return local if local.exists() else None
    except OSError:  # no name that this machine can have, such as one of 256 characters
        return None


def expanded(path: str, beside: Path) -> Path:
    """The path, with ``~`` as the home folder.

    If there is no home folder, ``~`` is an ordinary character.
    """
    try:
        return beside / Path(path).expanduser()
    except RuntimeError:
        return beside / path


def path_problem(path: str, beside: Path, *, may_be_hub_id: bool = True) -> str | None:
    """Why this path can't be used; None if it exists, or is not on this machine."""
    if sample_data.is_sample(path):
        return sample_data.why_no_sample(path)
    if is_s3_uri(path):
        has_bucket = path.removeprefix(S3_SCHEME).partition("/")[0]
        return None if has_bucket else f"got {shown(path)}, expected s3://BUCKET/PREFIX"
    local = find_local(path, beside)
    files = iter(()) if local is None else chain([local], local.rglob("*"))
    if pointer := next(filter(_is_lfs_pointer, islice(files, MOST_FILES_LOOKED_AT)), None):
        return (
            f"{pointer} is a pointer of Git LFS, not the file itself; expected the file: run git "
            "lfs pull beside it"
        )
    if local is not None or (may_be_hub_id and is_hub_name(path)):
        return None
    others = (
        ", an s3:// URI, or a Hub id such as nyu-mll/glue" if may_be_hub_id else " or an s3:// URI"
    )
    place = expanded(path, beside)
    got = f"{path[:LONGEST_SHOWN]!r} does not exist on this machine"
    if os.path.normpath(place) != os.path.normpath(path):
        got += f", where it would be {visible(str(place))[:LONGEST_SHOWN]}"
    return refusal(got, f"a local file or folder{others}", _near_paths(path, place))


def _near_paths(path: str, place: Path) -> list[str]:
    """The path, with the name in its folder of which its own looks like a misspelling."""
    if not Path(path).name:
        return []
    try:
        names = [file.name for file in islice(place.parent.iterdir(), MOST_FILES_LOOKED_AT)]
    except (OSError, ValueError):  # no such folder, or a name that no file can have
        return []
    near = close_to(place.name, names, alike=LEAST_ALIKE)
    # a link to nowhere has the name itself
    return [str(Path(path).with_name(name)) for name in near if name != place.name]


def _is_lfs_pointer(path: Path) -> bool:
    if not path.is_file() or path.stat().st_size > MOST_POINTER_BYTES:
        return False
    with path.open("rb") as file:
        return file.read(len(LFS_POINTER)) == LFS_POINTER


def source_problem(source: str, entry_point: object, beside: Path) -> tuple[str, str] | None:
    """The field of the workload that is wrong with a script's folder, and why."""
    if is_s3_uri(source):
        return None
    folder = find_local(source, beside)
    if folder is None or not folder.is_dir():
        place = visible(str(expanded(source, beside)))[:LONGEST_SHOWN]
        return "source", f"{place} is not a folder; accepted: a folder, or a tarball's s3:// URI"
    program = find_local(entry_point, folder) if isinstance(entry_point, str) else folder
    if program is None or (isinstance(entry_point, str) and not program.is_file()):
        there = ", ".join(sorted(path.name for path in folder.glob("*.py"))) or "no .py file"
        return "entry_point", f"{entry_point!r} is not in {folder}; the folder has {there}"
    return None


def find_path_problems(workload: Mapping[str, Any], beside: Path) -> Iterator[Problem]:
    """All local paths that do not exist."""
    for place, path in workload_paths(workload):
        problem = path_problem(path, beside, may_be_hub_id=not place.startswith(CHANNELS))
        if problem is not None:
            yield Problem(path=place, message=problem)
    source = workload.get("source")
    if isinstance(source, str):
        source_fault = source_problem(source, workload.get("entry_point"), beside)
        if source_fault is not None:
            yield Problem(path=f"workload.{source_fault[0]}", message=source_fault[1])


def find_argument_problems(suite: Suite, beside: Path) -> Iterator[Problem]:
    """Arguments that the script's argparse would read otherwise than the suite means: it gets each
    with a text.
    """
    workload = suite.workload
    given = dict[str, set[str]]()
    for cell in suite.cells:
        for name, value in arguments_of(cell, workload).items():
            given.setdefault(name, set()).add(str(value).casefold())
    try:
        text = (expanded(workload.source or "", beside) / (workload.entry_point or "")).read_bytes()
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    except (OSError, SyntaxError, ValueError):  # no source on this machine, or of another Python
        return
    for call in calls:
        if getattr(call.func, "attr", None) != "add_argument":
            continue
        names = {
            str(argument.value).lstrip("-")
            for argument in call.args
            if isinstance(argument, ast.Constant)
        }
        words = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        is_switch = any(
            word in words.get("action", "")
            for word in ("store_true", "store_false", "BooleanOptional")
        )
        for name in sorted(names & given.keys()):
            is_off = not given[name].isdisjoint(OFF)
            if words.get("type") == "bool" and is_off:
                got = "got false for an argument with type=bool, which is True for every text"
            elif is_switch and (is_off or b"parse_known_args" not in text):
                got = f"got a value for a switch ({words['action']}), which takes none"
            else:
                continue
            section = "workload" if name in workload.hyperparameters else "matrix"
            expected = "expected an argument such as type=lambda text: text == 'True', or none"
            yield Problem(path=f"{section}.hyperparameters.{name}", message=f"{got}; {expected}")


def find_source(folder: Path, entry_point: object, allowed: Collection[Path] = ()) -> Travelling:
    """The files of a script's folder that travel.

    Raises StagingRefused if the entry point does not.
    """
    travelling = find_travelling(folder, allowed=allowed, is_source=True)
    if isinstance(entry_point, str) and os.path.normpath(entry_point) not in travelling.files:
        raise StagingRefused(
            f"workload.entry_point: {entry_point!r} would not travel. {folder}: "
            f"{travelling.sentence()}. Rename it, or add --also-send {folder / entry_point}"
        )
    return travelling


def find_data(local: Path, allowed: Collection[Path], *, is_pretrained: bool) -> Travelling:
    """The files of a dataset, model, tokenizer or channel that travel.

    Raises StagingRefused for none.
    """
    travelling = travelling_data(local, allowed=allowed, is_pretrained=is_pretrained)
    if travelling.files:
        return travelling
    if not travelling.left_out:
        raise StagingRefused(f"{local} contains no files; give a file or a folder with data")
    raise StagingRefused(
        f"{local}: {travelling.sentence()}. Rename or copy the files that you need, or add "
        f"--also-send "
        "PATH for each"
    )


def travel_lines(
    workload: Mapping[str, Any], *, beside: Path, allowed: Collection[Path] = ()
) -> Iterator[str]:
    """For each path of this machine: how many files of what size `run` sends, and what it leaves
    out.
    """
    source = workload.get("source")
    if isinstance(source, str) and not is_s3_uri(source):
        travelling = find_source(expanded(source, beside), workload.get("entry_point"), allowed)
        yield f"source {source}: {travelling.sentence()}"
        programs = [path for name, path in travelling.files.items() if name.endswith(".py")]
        if not any(LOGS_STEPS in program.read_bytes() for program in programs):
            yield (
                f"caution: no program of {source} imports traindyno.callbacks, and a run without a "
                "step log has no figures; the three lines are in docs/own-script.md"
            )
    for place, path in workload_paths(workload):
        local = find_local(path, beside)
        if local is not None:
            name = place.removeprefix("workload.").removesuffix(".path")
            is_loaded = name in PRETRAINED and workload.get("task") != Task.SCRIPT
            travelling = find_data(local, allowed, is_pretrained=is_loaded)
            yield f"{name} {path}: {travelling.sentence()}"
