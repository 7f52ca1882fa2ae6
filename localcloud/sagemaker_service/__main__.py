"""``python -m localcloud.sagemaker_service``: serves requests until SIGTERM."""

import argparse
import json
import logging
import logging.handlers
import signal
import sys
import threading
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from localcloud.home import ENVIRONMENTS
from localcloud.loopback import LOOPBACK
from localcloud.sagemaker_service.events.aws_clients import local_aws_clients
from localcloud.sagemaker_service.instance_table import usable_cores
from localcloud.sagemaker_service.service import Service
from localcloud.sagemaker_service.settings import EngineChoice, RateChoice, ServiceSettings
from traindyno.core.documents.versions import VersionUnknown

LOG_BYTES = 5 * 1024 * 1024


def main(arguments: Sequence[str] | None = None) -> int:
    settings = _read_settings(arguments)
    settings.state_folder.mkdir(parents=True, exist_ok=True)
    _log_to(settings.state_folder / "service.log")
    try:
        built = Service(settings, local_aws_clients(settings.aws_endpoint, settings.region))
    except VersionUnknown as error:
        sys.exit(str(error))
    with built as service:
        for number in (signal.SIGTERM, signal.SIGINT):
            # A thread calls ``stop``, because it waits for the loop that this signal has interrupted.
            signal.signal(number, lambda *_: threading.Thread(target=service.stop).start())
        (settings.state_folder / "port").write_text(f"{service.port}\n", encoding="utf-8")
        logging.info("listening on %s:%d, AWS at %s", LOOPBACK, service.port, settings.aws_endpoint)
        service.serve()
    logging.info("ended")
    return 0


def _read_settings(arguments: Sequence[str] | None) -> ServiceSettings:
    parser = argparse.ArgumentParser(prog="python -m localcloud.sagemaker_service", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0, the default, selects a free port; STATE/port holds it")
    parser.add_argument("--state", type=Path, required=True, help="folder for state, job folders and service.log")
    parser.add_argument("--aws-endpoint", required=True, help="the local S3, Lambda, EventBridge and CloudWatch Logs")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--python", default=sys.executable, help="interpreter that runs the jobs' scripts")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, help="folder of the environments of images")
    parser.add_argument("--cores", type=_cores, default=usable_cores(), help="for example 0,1,4; default: all")
    parser.add_argument("--engine", type=EngineChoice, choices=list(EngineChoice), default=EngineChoice.BOTH)
    parser.add_argument("--checkpoint-sync-seconds", type=float, default=2.0)
    parser.add_argument("--stop-grace-seconds", type=float, default=120.0, help="between SIGTERM and SIGKILL")
    parser.add_argument("--keep-job-folders", action="store_true", help="keep inputs and outputs of ended jobs")
    parser.add_argument("--local-usd-per-hour", type=Decimal, default=Decimal("0.10"), help="nominal price of local.*")
    parser.add_argument(
        "--prices", type=Path, help="JSON file of USD per hour by instance type; replaces the snapshot's prices"
    )
    parser.add_argument("--quotas", type=Path, help="JSON file of applied quota values by quota code")
    parser.add_argument("--quota-approval-seconds", type=float, help="approve increase requests after this time")
    parser.add_argument("--grant-quotas", type=float, help="apply this value to every quota of instances that has none")
    parser.add_argument("--traces", type=Path, help="folder of trace files (*.json) for simulated jobs")
    parser.add_argument("--speed-up", type=float, default=600.0, help="virtual seconds of simulated jobs per second")
    parser.add_argument(
        "--jump-when-quiet-seconds",
        type=float,
        default=0.1,
        help="simulated time jumps ahead after this time without requests",
    )
    parser.add_argument("--rates", type=RateChoice, choices=list(RateChoice), default=RateChoice.OFF)
    read = parser.parse_args(arguments)
    return ServiceSettings(
        port=read.port,
        state_folder=read.state.resolve(),
        aws_endpoint=read.aws_endpoint,
        python=read.python,
        environments_folder=read.environments.resolve(),
        cores=read.cores,
        region=read.region,
        engine=read.engine,
        checkpoint_sync_seconds=read.checkpoint_sync_seconds,
        stop_grace_seconds=read.stop_grace_seconds,
        keep_job_folders=read.keep_job_folders,
        local_usd_per_hour=read.local_usd_per_hour,
        prices=_prices(read.prices) if read.prices else {},
        applied_quotas=json.loads(read.quotas.read_text(encoding="utf-8")) if read.quotas else {},
        granted_quota=read.grant_quotas,
        quota_approval_seconds=read.quota_approval_seconds,
        traces_folder=read.traces,
        speed_up=read.speed_up,
        jump_when_quiet_seconds=read.jump_when_quiet_seconds,
        rates=read.rates,
    )


def _prices(path: Path) -> dict[str, Decimal]:
    given = json.loads(path.read_text(encoding="utf-8"))
    return {name: Decimal(str(usd_per_hour)) for name, usd_per_hour in given.items()}


def _cores(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(number) for number in text.split(",")}))


def _log_to(path: Path) -> None:
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=1)
    logging.basicConfig(
        level=logging.INFO, handlers=[handler], format="%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
    )


if __name__ == "__main__":
    sys.exit(main())
