"""State SubmitRun: start the training job of a run's next attempt; its end answers the waiting task."""

import os
import time
from typing import Any

from traindyno.core.suite.runs import parse_run
from traindyno.lab.services import connect
from traindyno.lab.submit_run import submit_run
from traindyno.sagemaker.job_settings import JobSettings


def handle(event: dict[str, Any], _context: object) -> None:
    settings = JobSettings(
        region=os.environ["AWS_REGION"],
        role_arn=os.environ["TRAINING_ROLE_ARN"],
        results_bucket=os.environ["BUCKET"],
        lab=os.environ["LAB"],
        source_s3_uri=os.environ["SOURCE_S3_URI"],
        gpu_image_uri=os.environ.get("EFA_IMAGE_URI"),
        neuron_image_uri=os.environ.get("NEURON_IMAGE_URI"),
        seconds_between_starts=float(os.environ["SECONDS_BETWEEN_STARTS"]),
    )
    services = connect(table=os.environ["TABLE"], bucket=os.environ["BUCKET"])
    submit_run(
        parse_run(event["run"]), event["token"], services=services, settings=settings, now=time.time(), sleep=time.sleep
    )
