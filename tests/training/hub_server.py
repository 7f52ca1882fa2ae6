"""A stand-in for the Hugging Face Hub on loopback: repositories are folders, each with one commit.

It answers what huggingface_hub and datasets ask of the real one: a repository's commit and files,
and files by commit, whole or in part.
"""

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from localcloud.ports import LOOPBACK

COMMIT = "0123456789abcdef0123456789abcdef01234567"
API = re.compile(r"/api/(models|datasets)/(?P<id>[^/]+/[^/]+)(/revision/(?P<revision>[^/]+))?")
PATHS_INFO = re.compile(r"/api/(models|datasets)/(?P<id>[^/]+/[^/]+)/paths-info/[^/]+")
TREE = re.compile(
    r"/api/(models|datasets)/(?P<id>[^/]+/[^/]+)/tree/(?P<revision>[^/]+)(/(?P<path>.*))?"
)
RESOLVE = re.compile(r"/(datasets/)?(?P<id>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """A running hub, with the bytes sent by file name and the paths in the order of the requests.

    It waits ``delay_seconds`` before a part of a file.
    """

    environment: dict[str, str]
    delay_seconds: float = 0.0
    sent: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


@contextmanager
def hub_server(root: Path, home: Path, *, delay_seconds: float = 0.0) -> Iterator[Hub]:
    """Serves the folders ``owner/name`` of ``root``; a job's caches are in ``home``."""
    server = ThreadingHTTPServer((LOOPBACK, 0), _Handler)
    address = f"http://{LOOPBACK}:{server.server_port}"
    environment = {"HF_ENDPOINT": address, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0"}
    hub = Hub(environment=environment, delay_seconds=delay_seconds)
    server.root = root  # type: ignore[attr-defined]
    server.hub = hub  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = unquote(urlsplit(self.path).path)
        self.server.hub.asked.append(path)  # type: ignore[attr-defined]
        if match := PATHS_INFO.fullmatch(path):
            self._paths_info(self._repository(match), body)
        elif match := TREE.fullmatch(path):
            self._tree(self._repository(match), match["path"] or "")
        elif match := API.fullmatch(path):
            self._info(self._repository(match), match["id"], match["revision"])
        elif match := RESOLVE.fullmatch(path):
            self._file(self._repository(match) / match["file"], match["revision"])
        else:
            self._send_json({"error": "not found"}, status=404)

    def _repository(self, match: re.Match[str]) -> Path:
        root: Path = self.server.root  # type: ignore[attr-defined]
        return root / match["id"]

    def _info(self, folder: Path, name: str, revision: str | None) -> None:
        if not folder.is_dir() or revision not in (None, "main", COMMIT):
            code = "RevisionNotFound" if folder.is_dir() else "RepoNotFound"
            self._send_json({"error": "not found"}, status=404, headers={"X-Error-Code": code})
            return
        siblings = [
            {"rfilename": file, "size": (folder / file).stat().st_size} for file in _files(folder)
        ]
        self._send_json(
            {
                "_id": "0",
                "id": name,
                "sha": COMMIT,
                "private": False,
                "tags": [],
                "siblings": siblings,
            }
        )

    def _paths_info(self, folder: Path, body: bytes) -> None:
        text = body.decode()
        paths = (
            json.loads(text)["paths"] if text.startswith("{") else parse_qs(text).get("paths", [])
        )
        self._send_json([_entry(folder, path) for path in paths if (folder / path).exists()])

    def _tree(self, folder: Path, path: str) -> None:
        below = folder / path
        if not below.is_dir():
            self._send_json(
                {"error": "not found"}, status=404, headers={"X-Error-Code": "EntryNotFound"}
            )
            return
        is_recursive = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[
            0
        ].lower() in ("true", "1")
        paths = sorted(below.rglob("*") if is_recursive else below.iterdir())
        self._send_json([_entry(folder, listed.relative_to(folder).as_posix()) for listed in paths])

    def _file(self, path: Path, revision: str) -> None:
        if not path.is_file() or revision not in ("main", COMMIT):
            self._send_json(
                {"error": "not found"}, status=404, headers={"X-Error-Code": "EntryNotFound"}
            )
            return
        content = path.read_bytes()
        headers = {"ETag": f'"{_digest(path)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        wanted = RANGE.fullmatch(self.headers.get("Range", ""))
        if wanted is None:
            self._send(200, content, headers, path.name)
            return
        time.sleep(self.server.hub.delay_seconds)  # type: ignore[attr-defined]
        begin = int(wanted[1])
        end = int(wanted[2] or len(content) - 1)
        headers["Content-Range"] = f"bytes {begin}-{min(end, len(content) - 1)}/{len(content)}"
        self._send(206, content[begin : end + 1], headers, path.name)

    def _send_json(
        self, document: Any, *, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self._send(
            status,
            json.dumps(document).encode(),
            {"Content-Type": "application/json", **(headers or {})},
        )

    def _send(
        self, status: int, content: bytes, headers: dict[str, str], name: str | None = None
    ) -> None:
        self.send_response(status)
        for header, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(header, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if name is not None:
            sent: dict[str, int] = self.server.hub.sent  # type: ignore[attr-defined]
            sent[name] = sent.get(name, 0) + len(content)
        self.wfile.write(content)


def _files(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def _entry(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    if path.is_dir():
        return {"type": "directory", "path": name, "oid": _digest_of(name.encode())}
    return {"type": "file", "path": name, "size": path.stat().st_size, "oid": _digest(path)}


def _digest(path: Path) -> str:
    return _digest_of(path.read_bytes())


def _digest_of(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
