"""Installs the version of PyTorch that requirements.txt names into the environment of this Python:
``make install``.

The default wheel for Linux is a CUDA build, which requires gigabytes of NVIDIA's libraries. A
machine without an NVIDIA device gets PyTorch's CPU build, if the index of CPU builds answers within
the limit.
"""

import argparse
import base64
import platform
import queue
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from http.client import HTTPException
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

LIMIT_SECONDS = 5.0
DEVICE_LIMIT_SECONDS = 30
# Not --quiet: before each download pip prints the file's size.
PIP = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check")


class NoCpuBuild(Exception):
    """Why the CPU build can't be had. The text begins with the index."""


def main() -> int:
    options = read_options()
    version = pinned_version(options.requirements.read_text())
    if installed_version() == version:
        return 0
    if sys.platform == "linux" and not has_nvidia_device():
        try:
            return install_cpu_build(version, options.cpu_index, options.limit_seconds)
        except NoCpuBuild as error:
            tell(f"{error}.")
            tell(
                "pip takes the default wheel. PyPI's for Linux is a CUDA build, which requires "
                "NVIDIA's libraries."
            )
            tell("Before pip downloads a file, it prints the file's size.")
    return subprocess.run([*PIP, f"torch=={version}"], check=False).returncode


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--requirements", type=Path, default=Path(__file__).parents[1] / "requirements.txt"
    )
    parser.add_argument("--cpu-index", required=True)
    parser.add_argument("--limit-seconds", type=float, default=LIMIT_SECONDS)
    return parser.parse_args()


def pinned_version(text: str) -> str:
    (version,) = re.findall(r"^torch==(\S+)$", text, re.MULTILINE)
    return str(version)


def installed_version() -> str | None:
    """Without the build, such as ``+cpu``."""
    try:
        return metadata.version("torch").partition("+")[0]
    except metadata.PackageNotFoundError:
        return None


def has_nvidia_device() -> bool:
    """Whether nvidia-smi lists one, as the local cloud counts them."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return False
    limit = DEVICE_LIMIT_SECONDS
    try:
        listed = subprocess.run(
            [command, "--list-gpus"], capture_output=True, text=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired:
        tell(
            f"{command} did not answer within {limit} s: this machine counts as one without an "
            "NVIDIA device."
        )
        return False
    return listed.returncode == 0 and "GPU " in listed.stdout


def install_cpu_build(version: str, index: str, limit_seconds: float) -> int:
    build = f"{version}+cpu"
    python = f"{sys.version_info.major}{sys.version_info.minor}"
    wheel = rf"\btorch-{re.escape(build)}-cp{python}-[\w.-]+_{re.escape(platform.machine())}\.whl"
    if not re.search(wheel, unquote(read_within(f"{index.rstrip('/')}/torch/", limit_seconds))):
        told = without_credentials(index)
        raise NoCpuBuild(
            f"{told} has no torch {build} for Python {platform.python_version()} on "
            f"{platform.machine()}"
        )
    tell(
        f"This machine has no NVIDIA device: pip takes torch {build} from "
        f"{without_credentials(index)}."
    )
    # requirements/lock.txt has installed what the CPU build requires.
    status = subprocess.run(
        [*PIP, "--no-deps", "--index-url", index, f"torch=={build}"], check=False
    ).returncode
    if status:
        raise NoCpuBuild(f"{without_credentials(index)}: pip could not install torch {build}")
    return status


def read_within(address: str, limit_seconds: float) -> str:
    """The limit holds for all of it: a socket's own limit begins anew with each packet, and a name
    server has none.
    """
    answers: queue.SimpleQueue[str | NoCpuBuild] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(_read(address)), daemon=True).start()
    try:
        answer = answers.get(timeout=limit_seconds)
    except queue.Empty:
        raise NoCpuBuild(
            f"{without_credentials(address)} did not answer within {limit_seconds:g} s"
        ) from None
    if isinstance(answer, NoCpuBuild):
        raise answer
    return answer


def _read(address: str) -> str | NoCpuBuild:
    told = without_credentials(address)
    try:
        request = urllib.request.Request(told)
        for name, value in _authorization(address).items():
            request.add_unredirected_header(name, value)  # not to another host
        with urllib.request.urlopen(request) as response:
            page: bytes = response.read()
            return page.decode(errors="replace")
    except (OSError, HTTPException, ValueError) as error:
        return NoCpuBuild(f"{told} can't be read: {error}")


def without_credentials(address: str) -> str:
    """http://host/… of http://user:secret@host/…, to be asked and to be told."""
    scheme, mark, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


def _authorization(address: str) -> dict[str, str]:
    """urllib takes credentials in an address for a part of the host's name."""
    user, mark, _ = urlsplit(address).netloc.rpartition("@")
    name, _, secret = user.partition(":")
    text = f"{unquote(name)}:{unquote(secret)}".encode()
    return {"Authorization": f"Basic {base64.b64encode(text).decode()}"} if mark else {}


def tell(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
