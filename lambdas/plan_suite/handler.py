"""State PlanSuite: check and price a suite, and find the tokens that it needs, before any job
starts.
"""

import json
import time
from dataclasses import replace
from typing import Any

from traindyno.aws import clients
from traindyno.aws.data_listing import DataListing
from traindyno.aws.image_addresses import read_image_addresses
from traindyno.aws.prices import PriceSource
from traindyno.core.errors import SuiteInvalid, SuiteRefused
from traindyno.features import FEATURES
from traindyno.lab.environment import LaunchEnvironment, read_environment
from traindyno.lab.plan_suite import plan_execution, refusal_answer
from traindyno.lab.services import connect
from traindyno.lab.use_case import use_case
from traindyno.sagemaker.job_settings import JobSettings


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    execution_id = event["execution_id"]
    environment = read_environment(LaunchEnvironment)
    with use_case("PlanSuite", execution=execution_id) as line:
        try:
            plan = plan_execution(
                event["suite"],
                execution_id=execution_id,
                services=connect(environment),
                settings=_settings(environment),
                price_source=PriceSource(region=environment.aws_region),
                listing=DataListing(clients.s3()),
                features=FEATURES,
                now=time.time(),
            )
        except (SuiteInvalid, SuiteRefused) as error:
            line.update(refused=type(error).__name__)
            return refusal_answer(error)
        line.update(runs=plan.run_count)
    return {"execution_id": execution_id, "round": 0}


def _settings(environment: LaunchEnvironment) -> JobSettings:
    """The settings of jobs with the images that are built now, which the suite's jobs keep."""
    tags = json.loads(environment.image_tags)
    built = read_image_addresses(clients.ssm(), environment.lab, tags) if tags else {}
    return replace(environment.job_settings, images=built)
