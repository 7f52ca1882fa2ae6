"""The files that say how runs ended, with the checksums of what the runs wrote."""

import hashlib
import json
from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple, Optional

from traindyno.core.jobs.journal_format import ENDED, EXITED, FORMAT_VERSION, OUTPACED, THROWN_AWAY
from traindyno.parent.disk import files_below, remove, write_last
from traindyno.parent.host import Host

# Nothing that its processes could still write is wanted.
ENDED_AT_ONCE = (OUTPACED, THROWN_AWAY)
BLOCK_BYTES = 2**20


class EndVerdict(NamedTuple):
    """How a run ended.

    ``left`` says that the run has no end, for this reason, and goes into the next attempt.
    Otherwise ``reason`` is its end. ``host`` is the host whose process gave the exit code.
    ``bound`` is the bound of a run that was outpaced.
    """

    reason: Optional[str] = None
    left: Optional[str] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    host: Optional[str] = None
    bound: Optional[Dict[str, Any]] = None

    @property
    def has_failed(self) -> bool:
        return self.reason not in (EXITED, *ENDED_AT_ONCE) or bool(self.exit_code or self.signal)

    @property
    def is_at_once(self) -> bool:
        """Whether its processes are killed without time to end by themselves."""
        return self.reason in ENDED_AT_ONCE

    def word(self) -> str:
        return json.dumps(self._asdict())


def of_word(word: str) -> EndVerdict:
    return EndVerdict(**json.loads(word))


def of_status(status: int, host: str) -> EndVerdict:
    """EndVerdict on a process that failed.

    ``status``: exit code, or the negative number of a signal.
    """
    if status < 0:
        return EndVerdict(reason=EXITED, signal=-status, host=host)
    return EndVerdict(reason=EXITED, exit_code=status, host=host)


def write_end(host: Host, run_id: str, end: Dict[str, Any]) -> Optional[str]:
    """The end's text; None if it could not be written. Nothing of the run's step log is written
    after it.
    """
    folder = host.step_log(run_id) / host.job_name
    files = {
        path.relative_to(host.folder).as_posix(): described(path) for path in files_below(folder)
    }
    document = {
        "version": FORMAT_VERSION,
        "run_id": run_id,
        "job_name": host.job_name,
        "host": host.name,
        "hosts": list(host.hosts),
        **end,
        "files": files,
    }
    text = json.dumps(document, indent=1)
    return text if write_last(host.end_file(run_id), text) else None


def keep_end(host: Host, run_id: str, text: str) -> None:
    """Writes it again if a later run of the job has changed it."""
    path = host.end_file(run_id)
    try:
        is_same = path.read_bytes() == text.encode()
    except OSError:
        is_same = False
    if not is_same:
        write_last(path, text)


def forget_end(host: Host, run_id: str) -> None:
    """A parent of the same job, before a spot interruption, may have written it while another host
    had not; another run of the job may have forged it.
    """
    remove(host.end_file(run_id))


def whole_ends(folder: Path, run_id: str) -> Iterator[Dict[str, Any]]:
    """Yield the first host's end for each attempt in which the run has ended: the files of all its
    hosts are there, and what they name has the bytes that they say.
    """
    for attempt in sorted((folder / run_id / ENDED).glob("*")):
        ends = [_read(path) for path in sorted(attempt.glob("*.json"))]
        ends_by_host = {
            str(end["host"]): end for end in ends if end is not None and end.get("run_id") == run_id
        }
        hosts = {str(host) for end in ends_by_host.values() for host in end["hosts"]}
        if (
            ends_by_host
            and hosts == set(ends_by_host)
            and all(_has_its_files(folder, end) for end in ends_by_host.values())
        ):
            yield ends_by_host[min(ends_by_host)]


def described(path: Path) -> Dict[str, Any]:
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        for block in iter(lambda: file.read(BLOCK_BYTES), b""):
            digest.update(block)
            size += len(block)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _read(path: Path) -> Optional[Dict[str, Any]]:
    try:
        end = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_end = isinstance(end, dict) and end.get("version") == FORMAT_VERSION
    has_parts = is_end and isinstance(end.get("hosts"), list) and isinstance(end.get("files"), dict)
    return end if has_parts and isinstance(end.get("host"), str) else None


def _has_its_files(folder: Path, end: Dict[str, Any]) -> bool:
    try:
        return all(described(folder / name) == expected for name, expected in end["files"].items())
    except OSError:
        return False
