"""Whatever a deployment is started with, DeployModel answers the task by the name of an error, or waits for AWS."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.cpu_limit import cpu_limit
from tests.fuzz.mutations import damaged_documents
from tests.properties import examples
from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, SETTINGS, MemoryServing
from traindyno.core.serving.deployment import Hosting
from traindyno.core.serving.deployment_document import deployment_document
from traindyno.lab.serving.deploy_model import deploy_model

MOST_CPU_SECONDS = 10.0
TRANSFORM = replace(
    DEPLOYMENT, hosting=Hosting.TRANSFORM, expires_at=None, input_s3_uri="s3://results/data/x/", instance_count=3
)
WHOLE = [json.loads(json.dumps(deployment_document(each), default=str)) for each in (DEPLOYMENT, TRANSFORM)]
TOKEN = "token"


def test_a_damaged_deployment_is_answered_or_waits() -> None:
    answers = set()

    @examples(200)
    @given(st.sampled_from(WHOLE).flatmap(damaged_documents))
    def deploy(document: Any) -> None:
        try:
            document = json.loads(json.dumps(document))
        except (ValueError, RecursionError):
            return
        serving = MemoryServing()
        with cpu_limit(MOST_CPU_SECONDS):
            answer = deploy_model(document, TOKEN, services=serving.services, settings=SETTINGS, now=NOW)
        answers.add(answer)
        given_answers = [(token, name) for token, name, cause in serving.answers.given if cause and cause.encode()]
        assert given_answers == ([] if answer is None else [(TOKEN, answer)])
        assert answer is not None or serving.endpoints.requests

    deploy()
    assert {None, "DocumentInvalid"} <= answers, answers
