"""The machine and the software with which a section was measured."""

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path

import psutil

from localcloud.home import REPO_ROOT

PACKAGES = ("torch", "transformers", "boto3", "aws-cdk-lib")
CPU_FACTS = Path("/proc/cpuinfo")


def origin() -> str:
    """One line: date, machine, versions and the commit."""
    memory_gib = psutil.virtual_memory().total / 2**30
    # Of a package in two folders of the path, the first is imported.
    installed = {
        distribution.name: distribution.version for distribution in reversed([*distributions()])
    }
    # A machine that trains has no CDK.
    versions = ", ".join(f"{name} {installed[name]}" for name in PACKAGES if name in installed)
    return (
        f"{datetime.now(UTC):%Y-%m-%d} · {psutil.cpu_count()} cores of {processor_name()}, "
        f"{memory_gib:.0f} GiB · Python {platform.python_version()}, {versions} · commit "
        f"{commit()}"
    )


def processor_name() -> str:
    if CPU_FACTS.exists():
        for line in CPU_FACTS.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    """The commit, with a plus sign if tracked files differ from it."""
    named = _git("rev-parse", "--short", "HEAD")
    return (
        "unknown"
        if named is None
        else named + ("+" if _git("status", "--porcelain", "-uno") else "")
    )


def _git(*arguments: str) -> str | None:
    answer = subprocess.run(
        ["git", *arguments], cwd=REPO_ROOT, capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() if answer.returncode == 0 else None
