"""State JudgeSuite: write verdict and report, and tell the lab's SNS topic and the event bus."""

import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.notifications import notify, put_verdict_event
from traindyno.features import FEATURES
from traindyno.lab.environment import JudgeEnvironment, read_environment
from traindyno.lab.judge_suite import judge_suite, verdict_event, verdict_mail
from traindyno.lab.services import connect
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    execution_id = event["execution_id"]
    environment = read_environment(JudgeEnvironment)
    services = connect(environment)
    with use_case("JudgeSuite", execution=execution_id) as line:
        verdict = judge_suite(
            execution_id,
            bucket=services.bucket,
            executions=services.executions,
            facts={"lab": environment.lab, "region": environment.aws_region},
            features=FEATURES,
            now=time.time(),
        )
        detail = verdict_event(execution_id, verdict, environment.bucket)
        # The mail is last: a call that is repeated because another call failed has sent none.
        put_verdict_event(clients.events(), detail)
        notify(
            clients.sns(),
            environment.topic_arn,
            subject=f"Traindyno: {verdict.suite_name}",
            text=verdict_mail(verdict, detail["report"]),
        )
        line.update(finding=verdict.finding.value)
    return detail
