"""Which build of PyTorch ``make install`` takes, with the real pip and an index on loopback."""

import base64
import os
import platform
import re
import runpy
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from localcloud.ports import LOOPBACK
from tests.unit.localcloud.tiny_wheel import packed_wheel

REPO_ROOT = Path(__file__).resolve().parents[2]
VERSION = "3.9.9"
PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
LINUX_ONLY = pytest.mark.skipif(
    sys.platform != "linux", reason="the default wheels of other systems are CPU builds"
)
# As `nvidia-smi --list-gpus` prints it on a machine with an H100
LISTED = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-7b2cbd5c-3a8c-1f0e-8f57-2e0c8a3a1d5e)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    """Package indexes: ``cpu`` has a CPU build, ``default``, pip's own, a default wheel, and
    ``others`` has no build that fits.

    ``asked`` are the paths that were asked, with these ``authorizations``.
    """

    root: Path
    address: str
    late: threading.Event
    asked: list[str] = field(default_factory=list)
    authorizations: set[str | None] = field(default_factory=set)


class _Handler(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        indexes: Indexes = self.server.indexes  # type: ignore[attr-defined]
        indexes.asked.append(unquote(self.path))
        indexes.authorizations.add(self.headers["Authorization"])
        if self.path.startswith("/late/"):
            self._answer_byte_by_byte(indexes.late)
        else:
            super().do_GET()

    def _answer_byte_by_byte(self, ended: threading.Event) -> None:
        """Never silent for long, and never done before the test is."""
        self.send_response(200)
        self.end_headers()
        while not ended.wait(0.01):
            self.wfile.write(b" ")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def indexes(tmp_path: Path) -> Iterator[Indexes]:
    root = tmp_path / "indexes"
    system = f"linux_{platform.machine()}"
    add_wheel(root / "cpu/torch", f"{VERSION}+cpu", f"{PYTHON}-{PYTHON}-{system}")
    add_wheel(root / "others/torch", f"{VERSION}+cpu", f"cp37-cp37m-{system}")
    add_wheel(root / "others/torch", "3.9.8+cpu", f"{PYTHON}-{PYTHON}-{system}")
    add_wheel(root / "default/torch", VERSION, f"{PYTHON}-{PYTHON}-{system}")
    server = ThreadingHTTPServer((LOOPBACK, 0), partial(_Handler, directory=str(root)))
    late = threading.Event()
    made = Indexes(root=root, address=f"http://{LOOPBACK}:{server.server_port}", late=late)
    server.indexes = made  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    late.set()
    server.shutdown()
    thread.join()
    server.server_close()


def add_wheel(folder: Path, version: str, tag: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"torch-{version}-{tag}.whl").write_bytes(packed_wheel("torch", version, tag=tag))


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The end of an installation, with the installed versions of torch."""

    status: int
    builds: list[str]
    said: str


def install(
    indexes: Indexes,
    tmp_path: Path,
    cpu: str,
    *,
    credentials: str = "",
    limit_seconds: float = 300,
    programs: str = "",
) -> Installed:
    """Runs the program as ``make install`` does.

    The limit is long, because the machine may be busy.
    """
    address = indexes.address.replace("://", f"://{credentials}")
    wanted = tmp_path / "torch.txt"
    target = tmp_path / "installed"
    wanted.write_text(f"# A comment\ntorch=={VERSION}\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment |= {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_CACHE_DIR": "1",
        "PIP_NO_WARN_CONFLICTS": "1",
    }
    environment |= {
        "PIP_INDEX_URL": f"{indexes.address}/default",
        "NO_PROXY": LOOPBACK,
        "no_proxy": LOOPBACK,
    }
    environment |= {"PIP_TARGET": str(target), "PYTHONPATH": str(target), "PATH": programs}
    command = [
        sys.executable,
        str(REPO_ROOT / "requirements/torch_wheel.py"),
        "--requirements",
        str(wanted),
    ]
    command += [
        "--cpu-index",
        f"{address}/{cpu}",
        "--limit-seconds",
        str(limit_seconds),
    ]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    builds = [
        path.name.removeprefix("torch-").removesuffix(".dist-info")
        for path in target.glob("torch-*.dist-info")
    ]
    return Installed(status=ended.returncode, builds=builds, said=ended.stdout + ended.stderr)


@LINUX_ONLY
def test_a_machine_without_an_nvidia_device_gets_the_cpu_build_once(
    indexes: Indexes, tmp_path: Path
) -> None:
    first = install(indexes, tmp_path, "cpu")
    assert (first.status, first.builds) == (0, [f"{VERSION}+cpu"]), first.said
    asked = list(indexes.asked)
    assert {path.split("/")[1] for path in asked} == {"cpu"}
    assert install(indexes, tmp_path, "cpu") == Installed(
        status=0, builds=[f"{VERSION}+cpu"], said=""
    )
    assert indexes.asked == asked


@LINUX_ONLY
def test_a_machine_with_an_nvidia_device_gets_the_default_wheel(
    indexes: Indexes, tmp_path: Path
) -> None:
    program = tmp_path / "programs/nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{LISTED}'\n")
    program.chmod(0o755)
    installed = install(indexes, tmp_path, "cpu", programs=str(program.parent))
    assert (installed.status, installed.builds) == (0, [VERSION]), installed.said
    assert {path.split("/")[1] for path in indexes.asked} == {"default"}


@LINUX_ONLY
@pytest.mark.parametrize(
    ("index", "limit_seconds", "why"),
    [
        (
            "others",
            300,
            f"/others has no torch {VERSION}+cpu for Python {platform.python_version()} on ",
        ),
        ("late", 0.2, "/late/torch/ did not answer within 0.2 s."),
        ("cpu", 300, f"/cpu: pip could not install torch {VERSION}+cpu."),
    ],
)
def test_without_a_cpu_build_the_default_wheel_is_taken_and_its_size_said(
    indexes: Indexes, tmp_path: Path, index: str, limit_seconds: float, why: str
) -> None:
    """The credentials of the index are sent, and not told."""
    for broken in (indexes.root / "cpu/torch").iterdir():
        broken.write_bytes(b"no archive")
    installed = install(
        indexes, tmp_path, index, credentials="user:s%40cret@", limit_seconds=limit_seconds
    )
    assert (installed.status, installed.builds) == (0, [VERSION]), installed.said
    assert f"{indexes.address}{why}" in installed.said
    assert f"Basic {base64.b64encode(b'user:s@cret').decode()}" in indexes.authorizations
    assert "cret" not in installed.said
    assert f"/{index}/torch/" in indexes.asked
    (wheel,) = (indexes.root / "default/torch").iterdir()
    assert re.search(
        rf"Downloading \S+/{re.escape(wheel.name)} \({wheel.stat().st_size} bytes\)", installed.said
    )


@LINUX_ONLY
def test_a_silent_nvidia_smi_counts_as_no_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    definitions = runpy.run_path(str(REPO_ROOT / "requirements/torch_wheel.py"))[
        "has_nvidia_device"
    ]
    monkeypatch.setitem(definitions.__globals__, "DEVICE_LIMIT_SECONDS", 0.1)
    assert definitions() is False
    assert f"{program} did not answer within 0.1 s: " in capsys.readouterr().out


def test_a_version_in_no_index_is_an_error(indexes: Indexes, tmp_path: Path) -> None:
    for wheel in indexes.root.glob("default/torch/*"):
        wheel.unlink()
    installed = install(indexes, tmp_path, "absent")
    assert (installed.status, installed.builds) == (1, [])
    assert (
        sys.platform != "linux"
        or "/absent/torch/ can't be read: HTTP Error 404: File not found." in installed.said
    )
    assert f"No matching distribution found for torch=={VERSION}" in installed.said
