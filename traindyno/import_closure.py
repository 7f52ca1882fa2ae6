"""The files that programs import: what a job's container or a function needs of this repository."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

# Other packages are installed where the code runs. In the wheel's folder they are neighbours of
# ours.
OUR_PACKAGES = frozenset({"traindyno", "training", "lambdas"})
# ast takes more than ten times as long, and a synthesis waits for it. A test compares both for all
# modules.
IMPORT = re.compile(r"^ *(?:from ([\w.]+) )?import (\([^)]*\)|.+)", re.MULTILINE)
NAME = re.compile(r"[\w.]+")
QUOTED_NAME = re.compile(r'"(\w+(?:\.\w+)+)(?::\w+)?"')


def imported_files(programs: Iterable[str], root: Path) -> dict[str, Path]:
    """Name below ``root`` → file: the modules ``programs``, and all of our modules that they
    import, in functions too.

    Where a module imports ``importlib`` or ``resolve_name``, the dotted names that it quotes count
    as imports: tables of modules or of their classes, and packages whose data it reads.
    """
    files: dict[str, Path] = {}
    waiting = [*programs]
    known = set[str]()
    while waiting:
        name = waiting.pop()
        if name in known or name.split(".")[0] not in OUR_PACKAGES:
            continue
        known.add(name)
        module = root.joinpath(*name.split("."))
        sources = (module.with_suffix(".py"), module / "__init__.py")
        path = next((source for source in sources if source.is_file()), None)
        if path is None:
            continue
        files[path.relative_to(root).as_posix()] = path
        text = path.read_text(encoding="utf-8")
        quoted = QUOTED_NAME.findall(text) if "importlib" in text or "resolve_name" in text else []
        files |= {
            data.relative_to(root).as_posix(): data
            for package in quoted
            for data in _data_of(package, root)
        }
        waiting += [name.rpartition(".")[0], *imported_names(text), *quoted]
    return dict(sorted(files.items()))


def imported_names(text: str) -> Iterator[str]:
    """The modules that a source imports, among other names: ``from a import b`` gives ``a`` and
    ``a.b``.
    """
    for package, names in IMPORT.findall(text):
        yield package
        for name in NAME.findall(names):
            yield f"{package}.{name}" if package else name


def _data_of(package: str, root: Path) -> Iterator[Path]:
    folder = root.joinpath(*package.split("."))
    if folder.is_dir():
        yield from (
            path
            for path in folder.iterdir()
            if path.is_file() and path.suffix not in {".py", ".pyc"}
        )
