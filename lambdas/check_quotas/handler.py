"""State CheckQuotas: give each lane the concurrency that the account allows, or refuse the suite.

Its answer names the preparations that must run before the first round.
"""

import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.quotas import Quotas
from traindyno.core.errors import SuiteRefused
from traindyno.lab.check_quotas import check_quotas
from traindyno.lab.environment import BucketEnvironment, read_environment
from traindyno.lab.plan_suite import refusal_answer
from traindyno.lab.use_case import use_case
from traindyno.store.results_bucket import ResultsBucket


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    environment = read_environment(BucketEnvironment)
    sagemaker = clients.sagemaker_with_more_retries()
    with use_case("CheckQuotas", execution=event["execution_id"]) as line:
        try:
            more = check_quotas(
                event["execution_id"],
                quotas=Quotas(clients.service_quotas(), sagemaker, sleep=time.sleep),
                bucket=ResultsBucket(clients.s3(), environment.bucket),
                now=time.time(),
            )
        except SuiteRefused as error:
            line.update(refused=type(error).__name__)
            return refusal_answer(error)
        line.update(preparations=len(more.get("preparations", ())))
        return {**event, **more}
