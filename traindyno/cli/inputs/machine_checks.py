"""The checks of `traindyno doctor` on this machine."""

import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

OLDEST_PYTHON = (3, 11)
NEEDED_DISK_GB = 10
COMPILERS = ("g++", "c++", "clang++")
PACKAGES = ("traindyno", "boto3", "torch", "aws-cdk-lib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What a check of ``doctor`` found; ``advice`` says what to do, and is None if nothing is wrong."""

    subject: str
    found: str
    advice: str | None = None


def check_machine(folder: Path) -> Iterator[Check]:
    """``folder`` holds the state of the local cloud."""
    yield _python(sys.version_info[:3])
    yield _compiler(next((path for name in COMPILERS if (path := shutil.which(name))), None))
    yield _disk(shutil.disk_usage(folder).free / 1e9)
    yield _loopback()
    yield from map(_package, PACKAGES)


def _python(version: tuple[int, int, int]) -> Check:
    oldest = ".".join(map(str, OLDEST_PYTHON))
    advice = None if version >= OLDEST_PYTHON else f"install Python {oldest} or newer and run `make install`"
    return Check(subject="Python", found=".".join(map(str, version)), advice=advice)


def _compiler(path: str | None) -> Check:
    advice = None if path else "install g++: cells with compiler inductor need a C++ compiler"
    return Check(subject="C++ compiler", found=path or "none", advice=advice)


def _disk(free_gb: float) -> Check:
    advice = None if free_gb >= NEEDED_DISK_GB else f"free {NEEDED_DISK_GB} GB: environments and jobs' folders need it"
    return Check(subject="free disk space", found=f"{free_gb:.0f} GB", advice=advice)


def _loopback() -> Check:
    try:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
    except OSError as error:
        return Check(subject="ports", found=str(error), advice="allow listening on 127.0.0.1")
    return Check(subject="ports", found="127.0.0.1 can be listened on")


def _package(name: str) -> Check:
    try:
        return Check(subject=name, found=metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check(subject=name, found="not installed", advice="run `make install` in the checkout")
