"""The home of one local cloud, the folder of its state, logs, ports and process numbers."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from cattrs import Converter
from cattrs.errors import BaseValidationError

from localcloud.private_files import (
    NotPrivate,
    make_private_folder,
    open_private,
    owner_only,
)
from traindyno.callbacks.full_disk import is_disk_full
from traindyno.core.documents.converter import strict_converter
from traindyno.core.documents.problems import problems_of
from traindyno.core.errors import TraindynoError

HOME_VARIABLE = "TRAINDYNO_HOME"
# `up` makes this file first, and nothing removes it: a folder that has it is a home.
LOCK = "lock"
REPO_ROOT = Path(__file__).resolve().parent.parent
# Each folder below is a Python environment whose packages can't be installed together with ours.
ENVIRONMENTS = REPO_ROOT / ".envs"
Form = TypeVar("Form")


class HomeUnusable(TraindynoError):
    """The folder of the local cloud can't be written, or holds a file that can't be read."""


class DocumentDamaged(HomeUnusable):
    """A document of the home is not as the local cloud wrote it."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} is damaged, or of another version: {why}; remove the local cloud with: "
            "traindyno local down --erase, then start a new one with: traindyno local up"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A process that outlives the command that started it."""

    process_id: int
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    aws: int
    sagemaker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """The arguments with which the local SageMaker service was started last."""

    options: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The sources and the context of the last deployment."""

    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What every request to the local cloud has to name."""

    access_key_id: str


@dataclass(frozen=True, slots=True)
class Home:
    folder: Path

    @classmethod
    def from_environment(cls) -> "Home":
        return cls(Path(os.environ.get(HOME_VARIABLE) or REPO_ROOT / ".traindyno"))

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def prepare_log(self, name: str) -> Path:
        """Creates the log's folder and returns the log's path."""
        log = self.log(name)
        with self._writing(log):
            self._make_folder()
            log.parent.mkdir(mode=0o700, exist_ok=True)
        return log

    def state(self, name: str) -> Path:
        return self.folder / name

    def document(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def read_as(self, name: str, form: type[Form]) -> Form | None:
        """Reads the document of this name, or returns None if there is none.

        Raises:
            HomeUnusable: The document has another form, or can't be read.
        """
        path = self.document(name)
        try:
            return _converter().structure(json.loads(path.read_text()), form)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError as error:
            raise HomeUnusable(
                f"{path} can't be read by user {os.geteuid()}: {error.strerror}; set "
                f"{HOME_VARIABLE} to a folder of your own"
            ) from error
        except BaseValidationError as error:
            raise DocumentDamaged(
                path, "; ".join(str(problem) for problem in problems_of(error, ""))
            ) from error
        except (OSError, ValueError, TypeError, RecursionError) as error:
            content = "an empty file" if path.stat().st_size == 0 else "another document"
            raise DocumentDamaged(path, f"{content} ({error})") from error

    def write(self, name: str, document: Any) -> None:
        """Writes a document, which has one of the forms above."""
        path = self.document(name)
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        with self._writing(path):
            self._make_folder()
            with open(draft, "w", opener=open_private) as file:
                file.write(json.dumps(asdict(document), indent=2))
            draft.replace(path)

    def read_daemon(self, name: str) -> Daemon | None:
        return self.read_as(name, Daemon)

    def forget(self, name: str) -> None:
        path = self.document(name)
        with self._writing(path):
            path.unlink(missing_ok=True)

    @contextmanager
    def alone(self, *, tell: Callable[[str], None]) -> Iterator[None]:
        """Waits for and holds the home's lock, so that no two commands start or stop its parts at
        the same time.
        """
        path = self.folder / LOCK
        with self._writing(path):
            self._make_folder()
            lock = open(path, "a+", opener=open_private)  # noqa: SIM115 -- the next line closes it
        with lock, owner_only():
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                holder = lock.read().strip() or "unknown"
                tell(
                    f"waiting for process {holder}, which starts or stops the local cloud in "
                    f"{self.folder}"
                )
                fcntl.flock(lock, fcntl.LOCK_EX)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def _make_folder(self) -> None:
        try:
            make_private_folder(self.folder)
        except NotPrivate as error:
            raise HomeUnusable(
                f"{self.folder} can't hold a local cloud, which belongs to its owner alone: "
                f"{error}; set {HOME_VARIABLE} to a new folder"
            ) from error

    @contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if is_disk_full(error):
                raise
            raise HomeUnusable(
                f"{path} can't be written: {error.strerror}; the local cloud keeps its state in "
                f"{self.folder}: make it writable, or set {HOME_VARIABLE} to a folder that is"
            ) from error


@cache
def _converter() -> Converter:
    return strict_converter(())
