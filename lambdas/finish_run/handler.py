"""Event: a training job has ended. Say what that means for its run."""

import os
import time
from typing import Any

from traindyno.lab.finish_run import finish_run
from traindyno.lab.services import connect
from traindyno.sagemaker.job_events import job_name_in


def handle(event: dict[str, Any], _context: object) -> None:
    services = connect(table=os.environ["TABLE"], bucket=os.environ["BUCKET"])
    finish_run(job_name_in(event), lab=os.environ["LAB"], services=services, now=time.time())
