"""State JudgeSuite: verdict and report from the results, and a word to whoever waits for them."""

import os
import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.notifications import notify, tell
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.lab.judge_suite import judge_suite, verdict_event
from traindyno.lab.services import connect
from traindyno.lab.warm_pools import release_warm_pools


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    execution_id, bucket_name = event["execution_id"], os.environ["BUCKET"]
    services = connect(table=os.environ["TABLE"], bucket=bucket_name)
    pools = release_warm_pools(execution_id, lab=os.environ["LAB"], services=services, sleep=time.sleep)
    verdict = judge_suite(
        execution_id,
        bucket=services.bucket,
        suites=services.suites,
        facts={"lab": os.environ["LAB"], "region": os.environ["AWS_REGION"]},
        now=time.time(),
        pools=pools,
    )
    detail = verdict_event(execution_id, verdict, bucket_name)
    text = f"{describe_verdict(verdict).headline}\n\nReport: {detail['report']}\n"
    notify(clients.sns(), os.environ["TOPIC_ARN"], subject=f"Traindyno: {verdict.suite_name}", text=text)
    tell(clients.events(), detail)
    return detail
