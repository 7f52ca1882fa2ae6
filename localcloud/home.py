"""Where one local cloud keeps everything: its state, its logs, its ports and process numbers."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HOME_VARIABLE = "TRAINDYNO_HOME"
REPO_ROOT = Path(__file__).resolve().parent.parent
# Environments whose packages can't share one with ours.
ENVIRONMENTS = REPO_ROOT / ".envs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A process that outlives the command that started it. The start time tells it from a later owner of its number."""

    process_id: int
    started_at: float
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    aws: int
    sagemaker: int


@dataclass(frozen=True, slots=True)
class Home:
    folder: Path

    @classmethod
    def from_environment(cls) -> "Home":
        return cls(Path(os.environ.get(HOME_VARIABLE) or REPO_ROOT / ".traindyno"))

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def state(self, name: str) -> Path:
        return self.folder / name

    def read(self, name: str) -> dict[str, Any] | None:
        path = self.folder / f"{name}.json"
        if not path.exists():
            return None
        document: dict[str, Any] = json.loads(path.read_text())
        return document

    def write(self, name: str, document: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.json"
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(json.dumps(document, indent=2))
        draft.replace(path)

    def read_daemon(self, name: str) -> Daemon | None:
        document = self.read(name)
        return Daemon(**document) if document else None

    def write_daemon(self, name: str, daemon: Daemon) -> None:
        self.write(name, asdict(daemon))

    def forget(self, name: str) -> None:
        (self.folder / f"{name}.json").unlink(missing_ok=True)
