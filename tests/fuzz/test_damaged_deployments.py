"""Whatever a deployment is started with, DeployModel refuses it or creates its endpoint."""

import json
from typing import Any

from hypothesis import given

from tests.fuzz.cpu_limit import cpu_limit
from tests.fuzz.mutations import damaged_documents
from tests.properties import examples
from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, SETTINGS, MemoryServing
from traindyno.aws.endpoints import DeploymentRefused
from traindyno.core.errors import DocumentInvalid
from traindyno.core.serving.deployment import ModelNotServable, deployment_document
from traindyno.lab.serving.deploy_model import deploy_model

MOST_CPU_SECONDS = 10.0
WHOLE = json.loads(json.dumps(deployment_document(DEPLOYMENT), default=str))


def test_a_damaged_deployment_is_refused_or_created() -> None:
    ends = set()

    @examples(200)
    @given(damaged_documents(WHOLE))
    def deploy(document: Any) -> None:
        try:
            document = json.loads(json.dumps(document))
        except (ValueError, RecursionError):
            return
        lab = MemoryServing()
        try:
            with cpu_limit(MOST_CPU_SECONDS):
                deploy_model(document, serving=lab.serving, settings=SETTINGS, clock=lambda: NOW)
        except (DocumentInvalid, ModelNotServable, DeploymentRefused) as error:
            ends.add(type(error).__name__)
            assert not lab.sagemaker.endpoints
        else:
            ends.add("created")
            assert lab.sagemaker.endpoints

    deploy()
    assert {"created", "DocumentInvalid"} <= ends, ends
