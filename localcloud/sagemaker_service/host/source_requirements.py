"""Installs the requirements.txt of a job's source as the training toolkit does, once for each
content of the file.

pip resolves the file against the image's environment. Only missing packages are installed, into a
separate folder, so the environment is unchanged. PyTorch stays the environment's, unless pip can't
install the file with its version: the images have torchvision for it already, and pip would take
the newest torchvision with a PyTorch of its own, of gigabytes.
"""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path

FILE_NAME = "requirements.txt"
LOOK_AGAIN_SECONDS = 0.1
# A line with such a beginning or ending names files of the source: the packages then depend on
# these files too.
NAMES_FILES = ("-", ".", "/", "file:")
ARCHIVES = (".whl", ".tar.gz", ".zip")


class RequirementsNotInstalled(Exception):
    """The text has the words of the training toolkit's failure reason."""


class _CommandFailed(Exception):
    """The text is what the command printed about it."""


class _Stopped(Exception):
    """The job is to stop before the command has ended."""


def install_requirements(
    code: Path,
    *,
    python: str,
    cache: Path,
    log: Path,
    environment: Mapping[str, str],
    should_stop: Callable[[], bool],
) -> Path | None:
    """The folder with the installed packages; None if the source has no requirements.txt or the job
    is to stop.

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
    run = partial(_ran, code=code, log=log, environment=environment, should_stop=should_stop)
    try:
        missing = _missing(python, unfinished, run, log)
        if missing:
            run([*_pip(python), "--no-deps", "--target", str(unfinished), *missing])
    except _Stopped:
        return None
    except _CommandFailed as error:
        raise RequirementsNotInstalled(
            f"InstallRequirementsError: pip could not install the source's {FILE_NAME}: {error}. "
            "Without a network, put the wheels into the source folder and name their paths in the "
            "file, or set PIP_FIND_LINKS before `traindyno local up`"
        ) from error
    return unfinished.rename(folder)


def _missing(
    python: str, folder: Path, run: Callable[[Sequence[str]], None], log: Path
) -> list[str]:
    """The addresses of the packages to install."""
    report = folder / "report.json"
    constraint = folder / "constraint.txt"
    resolve = [*_pip(python), "--dry-run", "--report", str(report), "-r", FILE_NAME]
    installed = metadata.distributions(
        name="torch", path=[str(folder) for folder in _site_packages(python)]
    )
    torch = [f"torch=={distribution.version}" for distribution in installed]
    constraint.write_text("\n".join(torch))
    try:
        run([*resolve, "--constraint", str(constraint)])
    except _CommandFailed:
        if not torch:
            raise
        # Not only after a conflict: pip also goes back to old versions of a package, which may not
        # build.
        with log.open("a", encoding="utf-8") as output:
            output.write(
                f"pip can't install {FILE_NAME} with {torch[0]} of the image, and now tries "
                "without it\n"
            )
        run(resolve)
    constraint.unlink()
    packages = json.loads(report.read_text(encoding="utf-8"))["install"]
    report.unlink()
    return [package["download_info"]["url"] for package in packages]


def _pip(python: str) -> list[str]:
    return [python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]


def _ran(
    command: Sequence[str],
    code: Path,
    log: Path,
    environment: Mapping[str, str],
    should_stop: Callable[[], bool],
) -> None:
    """Runs it with its output in the job's log."""
    begin = log.stat().st_size if log.is_file() else 0
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=code,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        while process.poll() is None:
            if should_stop():
                process.kill()
                process.wait()
                raise _Stopped
            try:
                process.wait(LOOK_AGAIN_SECONDS)
            except subprocess.TimeoutExpired:
                continue
    if process.returncode:
        lines = log.read_bytes()[begin:].decode(errors="replace").splitlines()
        raise _CommandFailed(
            " ".join([line for line in lines if line.startswith("ERROR")] or lines[-1:])
        )


def _content_key(code: Path, python: str) -> str:
    text = (code / FILE_NAME).read_text(encoding="utf-8")
    # The time of a folder changes when a package is installed into it.
    version = " ".join(str(folder.stat().st_mtime_ns) for folder in _site_packages(python))
    digest = hashlib.sha256(f"{python}\n{version}\n{text}".encode())
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    if any(
        line.startswith(NAMES_FILES) or line.endswith(ARCHIVES) or " @ " in line for line in lines
    ):
        for path in sorted(path for path in code.rglob("*") if path.is_file()):
            digest.update(path.relative_to(code).as_posix().encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _site_packages(python: str) -> list[Path]:
    return sorted(Path(python).parent.parent.glob("lib/python*/site-packages"))
