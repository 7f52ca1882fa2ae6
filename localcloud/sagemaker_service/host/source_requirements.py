"""Installs the requirements.txt of a job's source as the training toolkit does, once for each content of the file.

pip resolves the file against the image's environment. Only missing packages are installed, into a separate folder, so
the environment is unchanged.
"""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

FILE_NAME = "requirements.txt"
LOOK_AGAIN_SECONDS = 0.1
# A line with such a beginning or ending names files of the source: the packages then depend on these files too.
NAMES_FILES = ("-", ".", "/", "file:")
ARCHIVES = (".whl", ".tar.gz", ".zip")


class RequirementsNotInstalled(Exception):
    """pip failed. The text has the words of the training toolkit's failure reason."""


def install_requirements(
    code: Path,
    *,
    python: str,
    cache: Path,
    log: Path,
    environment: Mapping[str, str],
    should_stop: Callable[[], bool],
) -> Path | None:
    """The folder with the installed packages; None if the source has no requirements.txt or the job is to stop.

    pip, and the code of packages that pip builds, get ``environment`` and no other variable.
    """
    if not (code / FILE_NAME).is_file():
        return None
    folder = cache / _content_key(code, python)
    if folder.is_dir():
        return folder
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    report = unfinished / "report.json"
    resolve = [*_pip(python), "--dry-run", "--report", str(report), "-r", FILE_NAME]
    if not _ran(resolve, code, log, environment, should_stop):
        return None
    found = json.loads(report.read_text(encoding="utf-8"))["install"]
    report.unlink()
    missing = [package["download_info"]["url"] for package in found]
    install = [*_pip(python), "--no-deps", "--target", str(unfinished), *missing]
    if missing and not _ran(install, code, log, environment, should_stop):
        return None
    return unfinished.rename(folder)


def _pip(python: str) -> list[str]:
    return [python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]


def _ran(
    command: Sequence[str], code: Path, log: Path, environment: Mapping[str, str], should_stop: Callable[[], bool]
) -> bool:
    """Runs pip with its output in the job's log. False if the job was stopped before pip ended."""
    begin = log.stat().st_size if log.is_file() else 0
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=code, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        while process.poll() is None:
            if should_stop():
                process.kill()
                process.wait()
                return False
            try:
                process.wait(LOOK_AGAIN_SECONDS)
            except subprocess.TimeoutExpired:
                continue
    if process.returncode:
        raise RequirementsNotInstalled(_failure(log, begin))
    return True


def _failure(log: Path, begin: int) -> str:
    lines = log.read_bytes()[begin:].decode(errors="replace").splitlines()
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
    return (
        f"InstallRequirementsError: pip could not install the source's {FILE_NAME}: {' '.join(errors)}. Without a "
        "network, put the wheels into the source folder and name their paths in the file, or set PIP_FIND_LINKS before "
        "`traindyno local up`"
    )


def _content_key(code: Path, python: str) -> str:
    text = (code / FILE_NAME).read_text(encoding="utf-8")
    digest = hashlib.sha256(f"{python}\n{_environment_version(python)}\n{text}".encode())
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    if any(line.startswith(NAMES_FILES) or line.endswith(ARCHIVES) or " @ " in line for line in lines):
        for part in _contents(code):
            digest.update(part)
    return digest.hexdigest()


def _environment_version(python: str) -> str:
    """A text that changes when a package is installed into the environment of ``python``."""
    folders = sorted(Path(python).parent.parent.glob("lib/python*/site-packages"))
    return " ".join(str(folder.stat().st_mtime_ns) for folder in folders)


def _contents(code: Path) -> Iterator[bytes]:
    for path in sorted(path for path in code.rglob("*") if path.is_file()):
        yield path.relative_to(code).as_posix().encode()
        yield hashlib.sha256(path.read_bytes()).digest()
