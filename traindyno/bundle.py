"""The source tarball that travels to a container: the built-in training code, or a user's own
folder with callbacks.
"""

import gzip
import io
import tarfile
from collections.abc import Collection, Mapping
from pathlib import Path

from traindyno.core.errors import TraindynoError
from traindyno.core.jobs.journal_format import PROGRAM
from traindyno.import_closure import imported_files
from traindyno.travelling_files import find_travelling

REPO_ROOT = Path(__file__).resolve().parent.parent
SIZE_LIMIT_BYTES = 256 * 2**20
ENTRY_FOLDER = "training/entry/"
# The job starts the first one; a shared job's parent the second.
CONTAINER_PROGRAMS = ("training.entry.traindyno_train", "training.entry.traindyno_ranks")
# A shared job starts this one, which starts its runs.
PARENT_PROGRAM = "traindyno.parent.program"


class SourceRefused(TraindynoError):
    """A source folder can't be packed."""


def training_files(root: Path = REPO_ROOT) -> dict[str, Path]:
    """Archive name → file of the built-in tasks: what their programs import, and the entry point at
    the top.

    Raises ``SourceRefused`` where ``root`` is no checkout: the wheel holds ``traindyno`` only.
    """
    if not (root / "training").is_dir():
        raise SourceRefused(
            f"{root} has no folder training: the code of the built-in tasks travels from a "
            "checkout of the repository; clone it, run `make install` there, and use its "
            ".venv/bin/traindyno (a suite with task: script needs none)"
        )
    files = imported_files(CONTAINER_PROGRAMS, root)
    del files[f"{ENTRY_FOLDER}__init__.py"]
    own = {name.removeprefix(ENTRY_FOLDER): path for name, path in files.items()}
    return dict(sorted((own | _parent_files(root)).items()))


def _parent_files(root: Path) -> dict[str, Path]:
    """Files of the process that starts the runs of a shared job, with its program at the top."""
    files = imported_files((PARENT_PROGRAM,), root)
    return {**files, PROGRAM: files[f"{PARENT_PROGRAM.replace('.', '/')}.py"]}


def script_files(folder: Path, *, allowed: Collection[Path] = ()) -> dict[str, Path]:
    """Archive name → file of a user's folder that travels, with the step log's callbacks and the
    parent beside it.
    """
    files = dict(find_travelling(folder, allowed=allowed, is_source=True).files)
    callbacks = sorted((REPO_ROOT / "traindyno/callbacks").glob("*.py"))
    ours = imported_files(
        (f"traindyno.callbacks.{path.stem}" for path in callbacks), REPO_ROOT
    ) | _parent_files(REPO_ROOT)
    clash = sorted(
        name for name in files if name.split("/")[0] in {"traindyno", "traindyno.py", PROGRAM}
    )
    if clash:
        what = "program" if clash[0] == PROGRAM else "package"
        raise SourceRefused(
            f"{folder} contains {clash[0]}: rename {clash[0].split('/')[0]}. The job adds a {what} "
            "of that name"
        )
    size = sum(path.stat().st_size for path in files.values())
    if size > SIZE_LIMIT_BYTES:
        raise SourceRefused(
            f"{folder} contains {size / 2**20:.0f} MiB in {len(files)} files: pass data as "
            f"workload.dataset. The source may have at most {SIZE_LIMIT_BYTES // 2**20} MiB"
        )
    return dict(sorted((files | ours).items()))


def pack(files: Mapping[str, Path]) -> bytes:
    """A .tar.gz of the files that is the same for the same contents, whenever and wherever it is
    made.
    """
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, path in sorted(files.items()):
            content = path.read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(content))
    # Level 9, the default, takes twice the time for 1 % less.
    return gzip.compress(raw.getvalue(), compresslevel=6, mtime=0)
