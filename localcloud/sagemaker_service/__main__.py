"""``python -m localcloud.sagemaker_service``: serves requests until SIGTERM.

Each request must name the access key of the variable AWS_ACCESS_KEY_ID, which is not an argument,
because every user of the machine can list those.
"""

import argparse
import logging
import logging.handlers
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localcloud.ports import LOOPBACK
from localcloud.private_files import OWNER_ONLY
from localcloud.sagemaker_service.event_delivery import local_aws_clients
from localcloud.sagemaker_service.instance_table import read_given_prices, usable_cores
from localcloud.sagemaker_service.service import Service
from localcloud.sagemaker_service.settings import ServiceSettings

LOG_BYTES = 5 * 1024 * 1024
KEY_VARIABLE = "AWS_ACCESS_KEY_ID"


def main(arguments: Sequence[str] | None = None) -> int:
    settings = _read_settings(arguments)
    access_key_id = os.environ.get(KEY_VARIABLE) or sys.exit(
        f"{KEY_VARIABLE} is not set: expected the access key that each request must name"
    )
    settings = replace(settings, access_key_id=access_key_id)
    settings.state_folder.mkdir(parents=True, exist_ok=True)
    log = settings.state_folder / "service.log"
    logging.basicConfig(
        level=logging.INFO,
        handlers=[logging.handlers.RotatingFileHandler(log, maxBytes=LOG_BYTES, backupCount=1)],
        format="%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s",
    )
    clients = local_aws_clients(settings.aws_endpoint, settings.access_key_id)
    with Service(settings, clients) as service:
        for number in (signal.SIGTERM, signal.SIGINT):
            # A thread calls ``stop``, because it waits for the loop that this signal has
            # interrupted.
            signal.signal(number, lambda *_: threading.Thread(target=service.stop).start())
        (settings.state_folder / "port").write_text(f"{service.port}\n", encoding="utf-8")
        logging.info("listening on %s:%d, AWS at %s", LOOPBACK, service.port, settings.aws_endpoint)
        service.serve()
    logging.info("ended")
    return 0


def _read_settings(arguments: Sequence[str] | None) -> ServiceSettings:
    """Reads the settings from the arguments; ServiceSettings has the defaults of the others."""
    parser = argparse.ArgumentParser(
        prog="python -m localcloud.sagemaker_service",
        description=__doc__,
        argument_default=argparse.SUPPRESS,
    )
    _add_places(parser)
    _add_jobs(parser)
    _add_simulation(parser)
    return ServiceSettings(**vars(parser.parse_args(arguments)), cores=usable_cores())


def _add_places(parser: argparse.ArgumentParser) -> None:
    """Adds the options of where the service listens, writes and finds other services."""
    add = parser.add_argument
    add(
        "--port",
        type=int,
        default=0,
        help="0, the default, selects a free port; STATE/port holds it",
    )
    add(
        "--state",
        dest="state_folder",
        type=_folder,
        required=True,
        help="for state, job folders and service.log",
    )
    add(
        "--aws-endpoint",
        required=True,
        help="the local S3, Lambda, EventBridge and CloudWatch Logs",
    )
    add(
        "--environments",
        dest="environments_folder",
        type=_folder,
        help="folder of the environments of images",
    )


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    """Adds the options of jobs that run on this machine, with their quotas and prices."""
    add = parser.add_argument
    add("--checkpoint-sync-seconds", type=float)
    add("--stop-grace-seconds", type=float, help="between SIGTERM and SIGKILL")
    add(
        "--local-memory-gib",
        type=float,
        help="memory of local.cpu; default: 80 %% of this machine's",
    )
    add(
        "--prices",
        type=read_given_prices,
        help="JSON file of USD per hour by instance type; replaces the snapshot's prices",
    )
    add(
        "--grant-quotas",
        dest="granted_quota",
        type=float,
        help="apply this value to the quotas of instances",
    )


def _add_simulation(parser: argparse.ArgumentParser) -> None:
    """Adds the options of simulated jobs."""
    add = parser.add_argument
    add(
        "--simulate-all",
        dest="simulates_all",
        action="store_true",
        help="simulate local.* jobs too",
    )
    add(
        "--traces",
        dest="traces_folder",
        type=Path,
        help="folder of trace files (*.json) for simulated jobs",
    )
    add("--speed-up", type=float, help="virtual seconds of simulated jobs per second")
    add(
        "--jump-when-quiet-seconds",
        type=float,
        help="simulated time jumps ahead after this time without requests",
    )


def _folder(text: str) -> Path:
    return Path(text).resolve()


if __name__ == "__main__":
    os.umask(OWNER_ONLY)
    sys.exit(main())
