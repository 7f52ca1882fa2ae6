"""Whatever a deployment is started with, DeployModel answers the task by the name of an error, or waits for AWS."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from tests.fuzz.cpu_limit import cpu_limit
from tests.fuzz.mutations import damaged_document
from tests.nightly import NIGHTLY
from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, SETTINGS, MemoryServing
from traindyno.core.serving.deployment import Hosting
from traindyno.core.serving.deployment_document import deployment_document
from traindyno.lab.serving.deploy_model import deploy_model

COUNT = (20_000 if NIGHTLY else 2000) // 4
PARTS = 2
MOST_CPU_SECONDS = 10.0
TRANSFORM = replace(
    DEPLOYMENT, hosting=Hosting.TRANSFORM, expires_at=None, input_s3_uri="s3://results/data/x/", instance_count=3
)
WHOLE = [json.loads(json.dumps(deployment_document(each), default=str)) for each in (DEPLOYMENT, TRANSFORM)]
TOKEN = "token"


def damaged(source: random.Random) -> Any:
    """As StartExecution takes it: an object, in JSON."""
    while True:
        document = damaged_document(source.choice(WHOLE), source)
        try:
            return json.loads(json.dumps(document))
        except (ValueError, RecursionError):
            continue


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_deployment_is_answered_or_waits(part: int) -> None:
    answers = set()
    for number in range(part, COUNT, PARTS):
        serving = MemoryServing()
        document = damaged(random.Random(number))
        try:
            with cpu_limit(MOST_CPU_SECONDS):
                answer = deploy_model(document, TOKEN, services=serving.services, settings=SETTINGS, now=NOW)
        except BaseException as error:
            raise AssertionError(f"mutation {number}: {error!r}: {document}"[:2000]) from error
        answers.add(answer)
        given = [(token, name) for token, name, cause in serving.answers.given if cause and cause.encode()]
        assert given == ([] if answer is None else [(TOKEN, answer)])
        assert answer is not None or serving.endpoints.requests
    assert {None, "DocumentInvalid"} <= answers, answers
