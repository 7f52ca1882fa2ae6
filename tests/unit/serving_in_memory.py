"""SageMaker's hosting in memory, behind the lab's own adapter: statuses, tags, refusals, and faults on request."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from io import BytesIO
from typing import Any

from botocore.exceptions import ClientError

from tests.unit.lab_in_memory import NOW, MemoryObjects
from traindyno.aws.endpoints import Endpoints
from traindyno.core.s3_keys import samples_key, saved_model_key
from traindyno.core.serving.deployment import ModelDeployment, deployment_document
from traindyno.core.serving.samples import EvaluationSample, EvaluationSamples, ScoredLabel, samples_document
from traindyno.core.suite.choices import Task
from traindyno.lab.serving.deploy_model import deploy_model
from traindyno.lab.serving.services import Serving
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.serving import ServingSettings

NAME = "traindyno--reviews-c1-abc123"
DEPLOYMENT = ModelDeployment(
    name=NAME,
    suite_name="reviews",
    execution_id="execution-1",
    run_id="c1-t1",
    job_name="traindyno--reviews-1",
    task=Task.SEQUENCE_CLASSIFICATION,
    owner="ada",
    instance_type="ml.c5.xlarge",
    usd_per_hour=Decimal("0.204"),
    price_source="AWS Price List, 2026-11-21",
    created_at=NOW,
    hours=1.0,
)
ROLE = "arn:aws:iam::111111111111:role/serving"
SETTINGS = ServingSettings(region="us-east-1", role_arn=ROLE, bucket="results", lab="traindyno", jobs=LabJobs())
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


def client_error(code: str, message: str, operation: str = "an operation") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


def unknown(what: str) -> ClientError:
    return client_error("ValidationException", f"Could not find {what}.")


@dataclass
class MemorySageMaker:
    """The calls of boto3's clients ``sagemaker`` and ``sagemaker-runtime``. ``fault`` may raise before any call.

    New endpoints are ``first_status``. Words in ``wrong`` get another answer than the samples say.
    """

    models: dict[str, Any] = field(default_factory=dict)
    configs: dict[str, Any] = field(default_factory=dict)
    endpoints: dict[str, Any] = field(default_factory=dict)
    first_status: str = "InService"
    wrong: set[str] = field(default_factory=set)
    fault: Callable[[str, str], None] = lambda _operation, _name: None

    def create_model(self, **request: Any) -> None:
        self._put("CreateModel", self.models, request["ModelName"], request)

    def create_endpoint_config(self, **request: Any) -> None:
        self._put("CreateEndpointConfig", self.configs, request["EndpointConfigName"], request)

    def create_endpoint(self, **request: Any) -> None:
        name = request["EndpointName"]
        new = {**request, "EndpointArn": f"arn:{name}", "EndpointStatus": self.first_status}
        self._put("CreateEndpoint", self.endpoints, name, new)

    def describe_endpoint(self, *, EndpointName: str) -> Any:
        self.fault("DescribeEndpoint", EndpointName)
        if EndpointName not in self.endpoints:
            raise unknown("endpoint")
        return self.endpoints[EndpointName]

    def list_tags(self, *, ResourceArn: str) -> Any:
        self.fault("ListTags", ResourceArn.removeprefix("arn:"))
        return {"Tags": self.endpoints[ResourceArn.removeprefix("arn:")].get("Tags", [])}

    def delete_endpoint(self, *, EndpointName: str) -> None:
        self.fault("DeleteEndpoint", EndpointName)
        if self.endpoints.get(EndpointName, {}).get("EndpointStatus") == "Creating":
            raise client_error("ValidationException", "Cannot update in-progress endpoint")
        self._delete(self.endpoints, EndpointName)

    def delete_endpoint_config(self, *, EndpointConfigName: str) -> None:
        self.fault("DeleteEndpointConfig", EndpointConfigName)
        self._delete(self.configs, EndpointConfigName)

    def delete_model(self, *, ModelName: str) -> None:
        self.fault("DeleteModel", ModelName)
        self._delete(self.models, ModelName)

    def get_paginator(self, _operation: str) -> Any:
        return self

    def paginate(self, *, NameContains: str) -> Any:
        self.fault("ListEndpoints", "")
        return [{"Endpoints": [each for name, each in self.endpoints.items() if NameContains in name]}]

    def invoke_endpoint(self, *, EndpointName: str, Body: bytes, **_: Any) -> Any:
        self.fault("InvokeEndpoint", EndpointName)
        word = json.loads(Body)["inputs"].split()[1]
        score = 0.5 if word in self.wrong else 0.9
        predictions = [{"label": word, "score": score}, {"label": "other", "score": 1 - score}]
        return {"Body": BytesIO(json.dumps({"predictions": predictions}).encode())}

    def add(self, name: str, status: str = "InService", **tags: str) -> None:
        """An endpoint with a configuration and a model of its name; ``_`` in the name of a tag stands for a colon."""
        listed = [{"Key": key.replace("_", ":", 1), "Value": value} for key, value in tags.items()]
        document = {"EndpointName": name, "EndpointArn": f"arn:{name}", "EndpointStatus": status, "Tags": listed}
        self.endpoints[name], self.configs[name], self.models[name] = document, {}, {}

    def _put(self, operation: str, kept: dict[str, Any], name: str, request: Any) -> None:
        self.fault(operation, name)
        if name in kept:
            raise client_error("ValidationException", "Cannot create already existing resource")
        kept[name] = request

    def _delete(self, kept: dict[str, Any], name: str) -> None:
        if name not in kept:
            raise unknown("resource")
        del kept[name]


@dataclass
class MemoryServing:
    """``serving`` of a lab whose training job has left its model and its samples."""

    sagemaker: MemorySageMaker = field(default_factory=MemorySageMaker)
    objects: MemoryObjects = field(default_factory=MemoryObjects)

    def __post_init__(self) -> None:
        self.objects.contents[SAVED_MODEL] = b"the model"
        self.objects.write_json(SAVED_SAMPLES, samples_document(SAMPLES))
        client: Any = self.sagemaker
        self.serving = Serving(lab="traindyno", bucket=self.objects, endpoints=Endpoints(client, lambda: client))

    def deploy(self, deployment: ModelDeployment = DEPLOYMENT, **changes: Any) -> str:
        deployment = replace(deployment, **changes)
        document, now = deployment_document(deployment), deployment.created_at
        deploy_model(document, serving=self.serving, settings=SETTINGS, clock=lambda: now)
        return deployment.name
