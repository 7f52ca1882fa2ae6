"""Custom resource: check, before the first image is built, that the account's quota allows the build."""

import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.cloudformation_answer import Answer, answer_cloudformation
from traindyno.aws.new_role import as_new_role
from traindyno.lab.check_build_quota import refusal_to_build
from traindyno.lab.environment import BuildEnvironment, read_environment
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> None:
    # Without an answer, CloudFormation waits until its time limit; an error raised here is also in the log.
    answer = Answer(is_well=False, reason="the quota of CodeBuild could not be read; see the log of CheckBuildQuota")
    try:
        refusal = None
        with use_case("CheckBuildQuota", request=event["RequestType"]) as line:
            if event["RequestType"] != "Delete":
                region = read_environment(BuildEnvironment).aws_region
                quotas = clients.service_quotas()
                refusal = as_new_role(lambda: refusal_to_build(quotas, region=region), sleep=time.sleep)
            line.note(refused=refusal)
        answer = Answer(is_well=refusal is None, reason=refusal or "")
    finally:
        answer_cloudformation(event, answer)
