"""One local cloud, whose processes are started, checked and stopped together.

They are MiniStack and the local SageMaker service.
"""

import shutil
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from localcloud import daemons
from localcloud.daemons import LocalCloudFailed
from localcloud.environment import (
    ACCOUNT,
    REGION,
    local_environment,
    make_access_key,
    read_access_key,
)
from localcloud.gate import authorization
from localcloud.home import (
    ENVIRONMENTS,
    REPO_ROOT,
    Daemon,
    Home,
    HomeUnusable,
    Ports,
    ServiceOptions,
)
from localcloud.ports import LOOPBACK, free_port, is_taken
from localcloud.temporary import job_temporary_environment, make_temporary_folder

MINISTACK = "ministack"
SAGEMAKER = "sagemaker"
NAMES = {MINISTACK: "MiniStack", SAGEMAKER: "the local SageMaker service"}
OPTIONS = "service-options"
MINISTACK_HEALTH = "/_ministack/health"
HEALTH = "/health"
PORTS = "ports"
# `up` makes this file in a new home. A change with which a home of before can't be used needs
# another name.
FORMAT = "format-2"
MINISTACK_STATE = "ministack-state"
MINISTACK_OBJECTS = "ministack-s3"
STOP_SECONDS = 4.0
LEAST_STOP_SECONDS = 0.5
# MiniStack's environment has none of our packages. PYTHONPATH would give them to its Lambda
# functions too.
RUN_SERVER = (
    "import sys; sys.path.append(sys.argv[1]); from localcloud.ministack_server import main; main()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudStatus:
    """Which parts run.

    ``ports`` is None unless both run, ``problem`` is None unless a running part reports one.
    """

    home: Path
    ministack: bool
    sagemaker: bool
    ports: Ports | None
    problem: str | None


def environment_of(home: Home, *, needs_service: bool = True) -> dict[str, str]:
    """The environment of a process that uses the local cloud, which must run."""
    return local_environment(
        require_ports(home, needs_service=needs_service), read_access_key(home)
    )


def status(home: Home) -> CloudStatus:
    ministack = daemons.running(home, MINISTACK)
    sagemaker = daemons.running(home, SAGEMAKER)
    ports = Ports(aws=ministack.port, sagemaker=sagemaker.port) if ministack and sagemaker else None
    parts = ((MINISTACK, ministack, MINISTACK_HEALTH), (SAGEMAKER, sagemaker, HEALTH))
    problems = {NAMES[name]: _read_health(home, part, path) for name, part, path in parts if part}
    return CloudStatus(
        home=home.folder,
        ministack=ministack is not None,
        sagemaker=sagemaker is not None,
        ports=ports,
        problem="; ".join(f"{name}: {problem}" for name, problem in problems.items() if problem)
        or None,
    )


def require_format(home: Home) -> None:
    if home.document(PORTS).exists() and not home.state(FORMAT).exists():
        raise HomeUnusable(
            f"{home.folder} is the home of a local cloud of another version: it has no file "
            f"{FORMAT}; remove it, with all state and results in it, with: traindyno local down "
            "--erase"
        )


def require_ports(home: Home, *, needs_service: bool = True) -> Ports:
    """The ports of a running local cloud.

    Without ``needs_service``, the earlier port of a SageMaker service that no longer runs is
    accepted too, because executions are listed, stopped and reported without it.
    """
    require_format(home)
    ministack = daemons.running(home, MINISTACK)
    sagemaker = daemons.running(home, SAGEMAKER)
    if ministack and sagemaker:
        return Ports(aws=ministack.port, sagemaker=sagemaker.port)
    if ministack:
        before = home.read_as(PORTS, Ports)
        if before and not needs_service:
            return Ports(aws=ministack.port, sagemaker=before.sagemaker)
        raise LocalCloudFailed(
            f"the local SageMaker service of the local cloud in {home.folder} has ended, and its "
            "training jobs with it; to start it again: traindyno local up"
        )
    if sagemaker:
        raise LocalCloudFailed(
            f"MiniStack of the local cloud in {home.folder} has ended, and its executions with it; "
            "to end the training jobs that still run: traindyno local down; to start it again: "
            "traindyno local up"
        )
    raise LocalCloudFailed(
        f"no local cloud runs in {home.folder}, so no execution and no training job of it runs; to "
        "start one: traindyno local up"
    )


def find_ended(home: Home) -> str | None:
    """Which part of this local cloud has ended; None if both run."""
    ended = [name for part, name in NAMES.items() if not daemons.running(home, part)]
    if not ended:
        return None
    which = f"{' and '.join(ended)} of the local cloud {'have' if ended[1:] else 'has'} ended"
    return f"{which}; to start it again: traindyno local up"


def find_stall(home: Home) -> str | None:
    """Why this local cloud makes no progress: a part has ended, does not answer, or reports a
    problem.
    """
    return find_ended(home) or status(home).problem


def start(home: Home, *, tell: Callable[[str], None], service_options: Sequence[str] = ()) -> Ports:
    """Starts the parts that don't run. State of earlier starts is kept.

    ``service_options`` are further arguments of the local SageMaker service. If one part has ended,
    the service starts with the arguments that it had.
    """
    require_format(home)
    make_access_key(home)
    was_running = False
    if not daemons.running(home, MINISTACK) and daemons.stop(home, SAGEMAKER, seconds=STOP_SECONDS):
        was_running = True
        tell("MiniStack has ended, and its executions with it: processes of their jobs are stopped")
    ministack = daemons.running(home, MINISTACK)
    sagemaker = daemons.running(home, SAGEMAKER)
    for part in (MINISTACK, SAGEMAKER):
        daemons.end_leftovers(home, part)
    ports = _choose_ports(home, ministack, sagemaker)
    home.state(FORMAT).touch(mode=0o600)
    home.write(PORTS, ports)
    if not ministack:
        tell(f"starting MiniStack on {LOOPBACK}:{ports.aws}")
        _start_ministack(home, ports)
    if not sagemaker:
        tell(f"starting the local SageMaker service on {LOOPBACK}:{ports.sagemaker}")
        before = home.read_as(OPTIONS, ServiceOptions) if ministack or was_running else None
        start_sagemaker(home, ports, service_options or (before.options if before else ()))
    return ports


def stop(home: Home, *, seconds: float = STOP_SECONDS) -> bool:
    """Stops both parts, jobs first; True if anything was running.

    The state is kept for the next start.
    """
    deadline = time.monotonic() + seconds
    had_sagemaker = daemons.stop(home, SAGEMAKER, seconds=seconds / 2)
    left = max(deadline - time.monotonic(), LEAST_STOP_SECONDS)
    had_ministack = daemons.stop(home, MINISTACK, seconds=left)
    return had_sagemaker or had_ministack


def erase(home: Home) -> None:
    """Ends both parts also where their documents are damaged or of another version."""
    for part in (SAGEMAKER, MINISTACK):
        daemons.find_again(home, part)
    stop(home)
    shutil.rmtree(home.folder, ignore_errors=True)


def save_state(home: Home, ports: Ports) -> None:
    """Makes MiniStack save its state now: a kill then loses only later changes."""
    request = request_to(home, ports.aws, "/_traindyno/save", method="POST")
    with daemons.WITHOUT_PROXY.open(request, timeout=60):
        pass


def _choose_ports(home: Home, ministack: Daemon | None, sagemaker: Daemon | None) -> Ports:
    """The ports of the last start if they are free: deployed resources hold URLs with ports.

    A running part expects the other part at its last port, which must then be free.
    """
    if ministack and sagemaker:
        return Ports(aws=ministack.port, sagemaker=sagemaker.port)
    before = home.read_as(PORTS, Ports)
    if ministack is None:
        return Ports(
            aws=_port(before.aws if before else None),
            sagemaker=_port(before.sagemaker if before else None),
        )
    if before is None or is_taken(before.sagemaker):
        raise LocalCloudFailed(
            f"MiniStack of the local cloud in {home.folder} runs, and the port at which it expects "
            f"the SageMaker service is {'taken by another program' if before else 'unknown'}; run: "
            "traindyno local down, then: traindyno local up"
        )
    return Ports(aws=ministack.port, sagemaker=before.sagemaker)


def _port(wanted: int | None) -> int:
    return wanted if wanted and not is_taken(wanted) else free_port()


def _start_ministack(home: Home, ports: Ports) -> None:
    """Starts MiniStack, after removing the functions' code that an earlier MiniStack unpacked."""
    python = ENVIRONMENTS / "cloud" / "bin" / "python"
    if not python.exists():
        raise LocalCloudFailed(
            f"MiniStack's environment was not found at {python}; run: make install"
        )
    temporary = make_temporary_folder(home, "ministack-lambda-")
    daemons.start(
        home,
        MINISTACK,
        [str(python), "-P", "-c", RUN_SERVER, str(REPO_ROOT)],
        port=ports.aws,
        health=request_to(home, ports.aws, MINISTACK_HEALTH),
        environment={
            **local_environment(ports, read_access_key(home)),
            "BIND_HOST": LOOPBACK,
            "GATEWAY_PORT": str(ports.aws),
            "MINISTACK_REGION": REGION,
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "PERSIST_STATE": "1",
            "STATE_DIR": str(home.state(MINISTACK_STATE)),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(home.state(MINISTACK_OBJECTS)),
            # MiniStack would also listen on other ports, which Traindyno does not use.
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "LAMBDA_WARM_TTL_SECONDS": "60",
            "LOG_LEVEL": "WARNING",
            "TMPDIR": str(temporary),
        },
        folder=home.folder,
    )


def start_sagemaker(home: Home, ports: Ports, options: Sequence[str]) -> None:
    home.write(OPTIONS, ServiceOptions(options=tuple(options)))
    aws = local_environment(ports, read_access_key(home))
    daemons.start(
        home,
        SAGEMAKER,
        [
            sys.executable,
            "-m",
            "localcloud.sagemaker_service",
            "--port",
            str(ports.sagemaker),
            "--state",
            str(home.state("sagemaker")),
            "--aws-endpoint",
            aws["AWS_ENDPOINT_URL"],
            *options,
        ],
        port=ports.sagemaker,
        health=request_to(home, ports.sagemaker, HEALTH),
        environment={**aws, **job_temporary_environment(home)},
        folder=REPO_ROOT,
    )


def request_to(home: Home, port: int, path: str, *, method: str = "GET") -> urllib.request.Request:
    """A request to a path that is not AWS's."""
    headers = authorization(read_access_key(home))
    return urllib.request.Request(f"http://{LOOPBACK}:{port}{path}", headers=headers, method=method)


def _read_health(home: Home, part: Daemon, path: str) -> str | None:
    """The part's problem; None if it has none."""
    try:
        request = request_to(home, part.port, path)
        with daemons.WITHOUT_PROXY.open(request, timeout=5):
            return None
    except HomeUnusable as error:
        return str(error)
    except OSError as error:
        return f"does not answer at {request.full_url} ({error})"
