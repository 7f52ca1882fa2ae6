"""The deployments of a lab kept in memory: the store's own rows, and endpoints and answers that tests script."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.unit.lab_in_memory import NOW, Answers, MemoryLogs, MemoryObjects
from tests.unit.memory_table import MemoryTable
from traindyno.aws.endpoints import DeploymentRefused, Endpoints, InvocationFailed, Invocations
from traindyno.aws.log_tail import LogTail
from traindyno.core.s3_keys import samples_key, saved_model_key
from traindyno.core.serving.deployment import Hosting, ModelDeployment
from traindyno.core.serving.samples import EvaluationSample, EvaluationSamples, ScoredLabel, samples_document
from traindyno.core.suite.choices import Task
from traindyno.lab.services import LabServices
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.serving.serving_description import ServingState
from traindyno.sagemaker.serving.serving_request import ServingSettings

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
            predictions=(ScoredLabel(label=word, score=0.9), ScoredLabel(label="other", score=0.1)),
        )
        for word in ("good", "bad")
    ),
)
SAVED_MODEL = saved_model_key(DEPLOYMENT.execution_id, DEPLOYMENT.run_id, DEPLOYMENT.job_name)
SAVED_SAMPLES = samples_key(DEPLOYMENT.execution_id, DEPLOYMENT.run_id, DEPLOYMENT.job_name)
NEW = ServingState(is_ready=False, failure=None)
READY = ServingState(is_ready=True, failure=None)


@dataclass
class ScriptedEndpoints(Endpoints):
    """``refusals`` are raised by the next creations. Endpoints (``hosted``) and ``transforms`` are new until a test
    gives them another state. ``deleted``: the calls, in their order.
    """

    requests: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    models: set[str] = field(default_factory=set)
    hosted: dict[str, ServingState] = field(default_factory=dict)
    transforms: dict[str, ServingState] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    refusals: list[Exception] = field(default_factory=list)

    def create_model(self, request: Mapping[str, Any]) -> None:
        self._take("model", request)
        self.models.add(request["ModelName"])

    def create_endpoint(self, config: Mapping[str, Any], endpoint: Mapping[str, Any]) -> None:
        (variant,) = config["ProductionVariants"]
        self._take("endpoint-config", config, model=variant["ModelName"])
        self._take("endpoint", endpoint)
        self.hosted.setdefault(endpoint["EndpointName"], NEW)

    def create_transform(self, request: Mapping[str, Any]) -> None:
        self._take("transform-job", request, model=request["ModelName"])
        self.transforms.setdefault(request["TransformJobName"], NEW)

    def find_endpoint(self, name: str) -> ServingState | None:
        return self.hosted.get(name)

    def find_transform(self, name: str) -> ServingState | None:
        return self.transforms.get(name)

    def delete_endpoint(self, name: str) -> None:
        self.deleted.append(f"endpoint {name}")
        self.hosted.pop(name, None)

    def stop_transform(self, name: str) -> None:
        self.deleted.append(f"transform {name}")
        if self.transforms.get(name) == NEW:
            self.transforms[name] = ServingState(is_ready=False, failure="the transform job ended as Stopped")

    def delete_model(self, name: str) -> None:
        self.deleted.append(f"model {name}")
        self.models.discard(name)

    def _take(self, kind: str, request: Mapping[str, Any], *, model: str | None = None) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        if model is not None and model not in self.models:
            raise DeploymentRefused(f'SageMaker refused the {kind}: Could not find model "{model}"')
        self.requests.append((kind, request))


@dataclass
class ScriptedInvocations(Invocations):
    """Those of ``endpoints`` that are ready answer as the samples say, but for the words in ``wrong``."""

    endpoints: ScriptedEndpoints
    wrong: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def ask(self, endpoint_name: str, body: bytes) -> bytes:
        if self.endpoints.find_endpoint(endpoint_name) != READY:
            raise InvocationFailed(f"endpoint {endpoint_name}: ValidationError: not found")
        document = json.loads(body)
        if "inputs" not in document:
            raise InvocationFailed(f"endpoint {endpoint_name}: ModelError: KeyError: 'inputs'")
        word = document["inputs"].split()[1]
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
        super().__init__(table=self.table, bucket=self.objects)
        self.endpoints = ScriptedEndpoints()
        self.invocations = ScriptedInvocations(self.endpoints)
        self.answers, self.log_tail = Answers(), LogTail(self.logs)
        self.objects.contents[SAVED_MODEL] = b"the model"
        self.bucket.write_json(SAVED_SAMPLES, samples_document(SAMPLES))

    @property
    def services(self) -> LabServices:
        return self
