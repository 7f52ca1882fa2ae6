"""State PlanSuite: check and price a suite, and see which tokens it needs, before anything is started."""

import os
import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.data_listing import DataListing
from traindyno.core.errors import SuiteInvalid, SuiteRefused
from traindyno.lab.plan_suite import take_in_suite
from traindyno.lab.rejection import rejection
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.store.results_bucket import ResultsBucket
from traindyno.store.suite_rows import SuiteRows


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    execution_id: str = event["execution_id"]
    try:
        take_in_suite(
            event["suite"],
            execution_id=execution_id,
            settings=JobSettings(
                region=os.environ["AWS_REGION"],
                role_arn="",  # no job is started here
                results_bucket=os.environ["BUCKET"],
                source_s3_uri=os.environ["SOURCE_S3_URI"],
                gpu_image_uri=os.environ.get("EFA_IMAGE_URI"),
            ),
            pricing=clients.pricing(),
            listing=DataListing(clients.s3()),
            bucket=ResultsBucket(clients.s3(), os.environ["BUCKET"]),
            suites=SuiteRows(clients.table(os.environ["TABLE"])),
            now=time.time(),
        )
    except (SuiteInvalid, SuiteRefused) as error:
        return rejection(error)
    return {"execution_id": execution_id, "round": 0}
