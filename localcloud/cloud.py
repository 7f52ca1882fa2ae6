"""One local cloud: MiniStack beside the local SageMaker service, started, looked at and stopped together."""

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from localcloud import daemons
from localcloud.daemons import LOOPBACK, LocalCloudFailed
from localcloud.environment import ACCOUNT, REGION, local_environment
from localcloud.home import ENVIRONMENTS, REPO_ROOT, Home, Ports

MINISTACK = "ministack"
SAGEMAKER = "sagemaker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is running; ``ports`` is None unless both parts are."""

    home: Path
    ministack: bool
    sagemaker: bool
    ports: Ports | None


def status(home: Home) -> Status:
    ministack, sagemaker = daemons.running(home, MINISTACK), daemons.running(home, SAGEMAKER)
    ports = Ports(aws=ministack.port, sagemaker=sagemaker.port) if ministack and sagemaker else None
    return Status(home=home.folder, ministack=ministack is not None, sagemaker=sagemaker is not None, ports=ports)


def require_ports(home: Home) -> Ports:
    ports = status(home).ports
    if ports is None:
        raise LocalCloudFailed(f"no local cloud runs in {home.folder}; start one with: traindyno local up")
    return ports


def start(home: Home, *, tell: Callable[[str], None], service_options: Sequence[str] = ()) -> Ports:
    """Start what is not running yet. State from an earlier time is found again.

    ``service_options`` are further arguments of the local SageMaker service.
    """
    found = status(home)
    if found.ports:
        return found.ports
    daemons.stop(home, SAGEMAKER)
    daemons.stop(home, MINISTACK)
    before = home.read("ports") or {}
    ports = Ports(aws=_port(before.get("aws")), sagemaker=_port(before.get("sagemaker")))
    home.write("ports", {"aws": ports.aws, "sagemaker": ports.sagemaker})
    tell(f"starting MiniStack on {LOOPBACK}:{ports.aws}")
    _start_ministack(home, ports)
    tell(f"starting the local SageMaker service on {LOOPBACK}:{ports.sagemaker}")
    start_sagemaker(home, ports, service_options)
    return ports


def stop(home: Home) -> bool:
    """Stop both parts, jobs first; True if anything was running. State stays for the next start."""
    had_sagemaker = daemons.stop(home, SAGEMAKER)
    had_ministack = daemons.stop(home, MINISTACK)
    return had_sagemaker or had_ministack


def erase(home: Home) -> None:
    stop(home)
    shutil.rmtree(home.folder, ignore_errors=True)


def _port(wanted: int | None) -> int:
    # Deployed resources hold URLs with the port of their day, so a restart takes the same ports where it can.
    return wanted if wanted and not daemons.is_taken(wanted) else daemons.free_port()


def _start_ministack(home: Home, ports: Ports) -> None:
    program = ENVIRONMENTS / "cloud" / "bin" / "ministack"
    if not program.exists():
        raise LocalCloudFailed(f"MiniStack is not installed at {program}; run: make install")
    daemons.start(
        home,
        MINISTACK,
        [str(program)],
        port=ports.aws,
        health_url=f"http://{LOOPBACK}:{ports.aws}/_ministack/health",
        environment={
            **local_environment(ports),
            "BIND_HOST": LOOPBACK,
            "GATEWAY_PORT": str(ports.aws),
            "MINISTACK_REGION": REGION,
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "PERSIST_STATE": "1",
            "STATE_DIR": str(home.state("ministack-state")),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(home.state("ministack-s3")),
            "LOG_LEVEL": "WARNING",
            "TMPDIR": _folder(home.state("tmp")),
        },
        folder=home.folder,
    )


def start_sagemaker(home: Home, ports: Ports, options: Sequence[str] = ()) -> None:
    aws = local_environment(ports)
    daemons.start(
        home,
        SAGEMAKER,
        [
            *[sys.executable, "-m", "localcloud.sagemaker_service", "--port", str(ports.sagemaker)],
            *["--state", str(home.state("sagemaker")), "--aws-endpoint", aws["AWS_ENDPOINT_URL"]],
            *options,
        ],
        port=ports.sagemaker,
        health_url=f"http://{LOOPBACK}:{ports.sagemaker}/health",
        environment=aws,
        folder=REPO_ROOT,
    )


def _folder(path: Path) -> str:
    path.mkdir(parents=True, exist_ok=True)
    return str(path)
