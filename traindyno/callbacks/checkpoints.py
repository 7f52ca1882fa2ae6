"""Complete checkpoints: a marker, written last, names every file with its size and checksum, and
has its own checksum.

SageMaker copies the checkpoint folder to S3 file by file and in no defined order while the job
runs. After an interruption the folder may hold a new marker with old files, or truncated files. The
checksums find both. It may also hold a checkpoint without the step log of its steps, which the
sizes in the marker find. Standard library only, Python 3.8: users' scripts use it, too.

Checkpoints and logs reach S3 in no defined order. A run that continues after a checkpoint whose
steps' lines were lost with the instance would never log these steps.
"""

import contextlib
import json
import os
import sys
import time
import zlib
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from traindyno.callbacks.process import this_process
from traindyno.core.step_log.line import CHECKPOINTS_VARIABLE, DIRECTORY_VARIABLE

LogSizes = Mapping[str, int]
MARKER = "complete.json"
MARKER_VERSION = 1
CHECKSUM = "crc32"  # of the rest of the marker
CHUNK_BYTES = 1 << 22
AnyPath = Union[str, "os.PathLike[str]"]


def measure_log(environment: Mapping[str, str] = os.environ) -> Dict[str, int]:
    """Bytes of the newest log of each process of this job on this host, by the file's path below
    the log's folder.
    """
    directory = environment.get(DIRECTORY_VARIABLE)
    if not directory:
        return {}
    job = Path(directory, this_process(environment).job_name)
    newest = {path.name.split(".")[0]: path for path in sorted(job.glob("rank-*.jsonl"))}
    return {path.relative_to(directory).as_posix(): path.stat().st_size for path in newest.values()}


class CheckpointRefused(Exception):
    """A checkpoint can't be used; the message names it, what was expected and what was found."""


def checkpoint_folder(environment: Mapping[str, str] = os.environ) -> Optional[str]:
    """The folder whose content SageMaker keeps in S3 and gives to the run's next attempt; None
    outside Traindyno.
    """
    return environment.get(CHECKPOINTS_VARIABLE)


def mark_complete(folder: AnyPath, facts: Optional[Mapping[str, Any]] = None) -> None:
    """Call it once per checkpoint, after its last file is written.

    ``facts`` come back from ``read_marker``.
    """
    root = Path(folder)
    log = measure_log()
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    write_marker(
        root, describe_files(root, (name for name in names if name != MARKER)), facts or {}, log
    )


def newest_complete(folder: Optional[AnyPath]) -> Optional[str]:
    """The newest complete checkpoint among the folders below ``folder``; None if there is none.

    Refused checkpoints are named on stderr, with the reason.
    """
    if folder is None or not Path(folder).is_dir():
        return None
    complete = []
    is_of_run = _is_of_this_run(Path(folder))
    for candidate in sorted(
        path for path in Path(folder).iterdir() if path.is_dir() and any(path.iterdir())
    ):
        try:
            marker = read_marker(candidate)
            check_files(candidate, marker["files"])
            if is_of_run:
                check_log(candidate, marker["log"])
        except CheckpointRefused as error:
            print("checkpoint refused: {}".format(error), file=sys.stderr, flush=True)  # noqa: T201
        else:
            complete.append((marker["written_at"], str(candidate)))
    return max(complete)[1] if complete else None


def _is_of_this_run(folder: Path) -> bool:
    """Whether a run continues its own log after a checkpoint in ``folder``: those of another run,
    as a channel has them, have their logs elsewhere.
    """
    own = checkpoint_folder()
    if own is None:
        return False
    resolved = folder.resolve()
    root = Path(own).resolve()
    return root in (resolved, *resolved.parents)


def describe_files(folder: Path, names: Iterable[str]) -> Dict[str, Any]:
    """Size and checksum of each file, by name."""
    described = {}
    for name in names:
        size, checksum = _measure(folder / name)
        described[name] = {"bytes": size, "crc32": checksum}
    return described


def write_marker(
    folder: Path, files: Mapping[str, Any], facts: Mapping[str, Any], log: LogSizes
) -> None:
    """Write the marker atomically.

    ``log``: what the step log needs to have where a run continues after it.
    """
    described = {"files": dict(files), "facts": dict(facts), "log": dict(log)}
    content = {"version": MARKER_VERSION, "written_at": time.time(), **described}
    draft = folder / (MARKER + ".draft")
    with draft.open("w", encoding="utf-8") as file:
        json.dump({**content, CHECKSUM: _checksum_of(content)}, file, indent=1, sort_keys=True)
    draft.replace(folder / MARKER)


def remove_marker(folder: Path) -> None:
    """Call it before the folder's files are replaced."""
    with contextlib.suppress(FileNotFoundError):
        (folder / MARKER).unlink()


def read_marker(folder: Path) -> Dict[str, Any]:
    """Marker of a complete checkpoint.

    It has ``files``, ``facts``, ``log``, and ``written_at`` in epoch seconds. Raises
    CheckpointRefused.
    """
    try:
        document = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointRefused(
            "{} has no {}: it was not finished".format(folder, MARKER)
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointRefused("{}/{} is damaged: {}".format(folder, MARKER, error)) from error
    version = document.get("version") if isinstance(document, dict) else None
    if version != MARKER_VERSION:
        raise CheckpointRefused(
            "{}/{} has version {}; expected version {}".format(
                folder, MARKER, version, MARKER_VERSION
            )
        )
    checksum = document.pop(CHECKSUM, None)
    if checksum != _checksum_of(document):
        raise CheckpointRefused(
            "{}/{} is damaged: expected what its checksum is of".format(folder, MARKER)
        )
    return document  # type: ignore[no-any-return]


def _checksum_of(content: Mapping[str, Any]) -> str:
    """The same for the content that is written and the one that is read: JSON turns keys into
    text.
    """
    text = json.dumps(json.loads(json.dumps(content)), sort_keys=True)
    return "{:08x}".format(zlib.crc32(text.encode()))


def check_files(folder: Path, files: Mapping[str, Any]) -> None:
    """Raises CheckpointRefused with the first file that is not as its marker says."""
    for name, expected in files.items():
        problem = problem_of(folder / name, expected)
        if problem is not None:
            raise CheckpointRefused(problem)


def check_log(folder: Path, log: LogSizes) -> None:
    """Raises CheckpointRefused if the step log lacks lines from before the checkpoint.

    Outside Traindyno nothing reads the log.
    """
    directory = os.environ.get(DIRECTORY_VARIABLE)
    for name, size in sorted(log.items()) if directory else ():
        path = Path(str(directory), name)
        bytes_there = path.stat().st_size if path.is_file() else 0
        if bytes_there < size:
            raise CheckpointRefused(
                (
                    "{} is not used: the log of its steps, {}, has {} bytes; expected at least {}"
                ).format(folder, path, bytes_there, size)
            )


def problem_of(path: Path, expected: Mapping[str, Any]) -> Optional[str]:
    """Why the file is not the one that was marked; None if it is."""
    try:
        size = path.stat().st_size
        if size != expected["bytes"]:
            return "{} has {} bytes; expected {}".format(path, size, expected["bytes"])
        checksum = _measure(path)[1]
    except (OSError, ValueError) as error:  # a ValueError for a name that no file can have
        return "{} can't be read: {}".format(path, error)
    if checksum != expected["crc32"]:
        return "{} has checksum {}; expected {}".format(path, checksum, expected["crc32"])
    return None


def written_bytes(folder: AnyPath, since: float) -> int:
    """The bytes of the files below ``folder`` that were written at or after ``since``, in epoch
    seconds.
    """
    stats: List[os.stat_result] = []
    for path in Path(folder).rglob("*"):
        try:
            stats.append(path.stat())
        except FileNotFoundError:  # removed in the meantime, like the oldest checkpoint
            continue
    return sum(
        status.st_size
        for status in stats
        if status.st_mtime >= since and not S_ISDIR(status.st_mode)
    )


def _measure(path: Path) -> Tuple[int, str]:
    size = 0
    checksum = 0
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(CHUNK_BYTES), b""):
            size += len(chunk)
            checksum = zlib.crc32(chunk, checksum)
    return size, "{:08x}".format(checksum)
