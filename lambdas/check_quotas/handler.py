"""State CheckQuotas: give each lane the concurrency that the account allows, or refuse the suite.

Its answer names the preparations that are due, so that the state machine goes on to them or past them.
"""

import os
import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.quotas import Quotas
from traindyno.core.errors import SuiteRefused
from traindyno.lab.check_quotas import check_quotas
from traindyno.lab.rejection import rejection
from traindyno.store.results_bucket import ResultsBucket


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    try:
        more = check_quotas(
            event["execution_id"],
            quotas=Quotas(clients.service_quotas(), clients.cloudwatch(), clients.sagemaker(), sleep=time.sleep),
            bucket=ResultsBucket(clients.s3(), os.environ["BUCKET"]),
            now=time.time(),
        )
    except SuiteRefused as error:
        return rejection(error)
    return {**event, **more}
