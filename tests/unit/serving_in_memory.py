"""The deployments of a lab kept in memory: the store's own rows, and endpoints and answers that tests script."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.unit.lab_in_memory import NOW, Answers, MemoryLogs, MemoryObjects
from tests.unit.memory_table import MemoryTable
from traindyno.aws.endpoints import Endpoints, InvocationFailed, Invocations
from traindyno.aws.log_tail import LogTail
from traindyno.core.s3_keys import samples_key, saved_model_key
from traindyno.core.serving.deployment import Hosting, ModelDeployment
from traindyno.core.serving.samples import EvaluationSample, EvaluationSamples, Prediction, samples_document
from traindyno.core.suite.choices import Task
from traindyno.lab.services import LabServices
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.serving_description import ServingState
from traindyno.sagemaker.serving_request import ServingSettings

NAME = "traindyno--reviews-c1-abc123"
DEPLOYMENT = ModelDeployment(
    name=NAME,
    hosting=Hosting.ENDPOINT,
    suite_name="reviews",
    execution_id="execution-1",
    cell_id="c1",
    run_id="c1-t1",
    job_name="traindyno--reviews-1",
    task=Task.SEQUENCE_CLASSIFICATION,
    owner="ada",
    instance_type="ml.c5.xlarge",
    usd_per_hour=Decimal("0.204"),
    price_source="AWS Price List, 2026-11-21",
    expires_at=NOW + 3600,
)
SETTINGS = ServingSettings(
    region="us-east-1",
    role_arn="arn:aws:iam::111111111111:role/serving",
    bucket="results",
    lab="traindyno",
    jobs=LabJobs(),
)
SAMPLES = EvaluationSamples(
    task=Task.SEQUENCE_CLASSIFICATION,
    samples=tuple(
        EvaluationSample(
            inputs=f"a {word} film",
            predictions=(Prediction(label=word, score=0.9), Prediction(label="other", score=0.1)),
        )
        for word in ("good", "bad")
    ),
)
SAVED_MODEL = saved_model_key(DEPLOYMENT.execution_id, DEPLOYMENT.run_id, DEPLOYMENT.job_name)
SAVED_SAMPLES = samples_key(DEPLOYMENT.execution_id, DEPLOYMENT.run_id, DEPLOYMENT.job_name)
READY = ServingState(is_ready=True, failure=None)


@dataclass
class ScriptedEndpoints(Endpoints):
    """``refusals`` are raised by the next creations. ``states``: what a description says, by name."""

    requests: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    states: dict[str, ServingState] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    refusals: list[Exception] = field(default_factory=list)

    def create_model(self, request: Mapping[str, Any]) -> None:
        self._take("model", request)

    def create_endpoint(self, config: Mapping[str, Any], endpoint: Mapping[str, Any]) -> None:
        self._take("endpoint-config", config)
        self._take("endpoint", endpoint)

    def create_transform(self, request: Mapping[str, Any]) -> None:
        self._take("transform-job", request)

    def find_endpoint(self, name: str) -> ServingState | None:
        return self.states.get(name)

    def find_transform(self, name: str) -> ServingState | None:
        return self.states.get(name)

    def delete_endpoint(self, name: str) -> None:
        self.deleted.append(f"endpoint {name}")

    def stop_transform(self, name: str) -> None:
        self.deleted.append(f"transform {name}")

    def delete_model(self, name: str) -> None:
        self.deleted.append(f"model {name}")

    def _take(self, kind: str, request: Mapping[str, Any]) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.requests.append((kind, request))


@dataclass
class ScriptedInvocations(Invocations):
    """Answers as the samples say, but for the words in ``wrong``."""

    wrong: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    fails: bool = False

    def ask(self, endpoint_name: str, body: bytes) -> bytes:
        if self.fails:
            raise InvocationFailed(f"endpoint {endpoint_name}: ModelError")
        word = json.loads(body)["inputs"].split()[1]
        self.asked.append(word)
        score = 0.5 if word in self.wrong else 0.9
        predictions = [{"label": word, "score": score}, {"label": "other", "score": 1 - score}]
        return json.dumps({"predictions": predictions}).encode()


class MemoryServing(LabServices):
    endpoints: ScriptedEndpoints
    invocations: ScriptedInvocations
    answers: Answers
    log_tail: LogTail

    def __init__(self) -> None:
        self.table, self.objects, self.logs = MemoryTable(), MemoryObjects(), MemoryLogs()
        super().__init__(table=self.table, objects=self.objects)
        self.endpoints, self.invocations = ScriptedEndpoints(), ScriptedInvocations()
        self.answers, self.log_tail = Answers(), LogTail(self.logs)
        self.objects.contents[SAVED_MODEL] = b"the model"
        self.bucket.write_json(SAVED_SAMPLES, samples_document(SAMPLES))
