"""SageMaker's hosting in memory, behind the lab's own adapter: statuses, tags, refusals, and faults
on request.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from io import BytesIO
from typing import Any

from botocore.exceptions import ClientError

from tests.unit.lab_in_memory import NOW, MemoryObjects
from traindyno.api.served_model import deploy_model
from traindyno.aws.endpoints import Endpoints
from traindyno.core.s3_keys import samples_key, saved_model_key
from traindyno.core.serving.deployment import ModelDeployment
from traindyno.core.serving.samples import (
    EvaluationSample,
    EvaluationSamples,
    ScoredLabel,
    samples_document,
)
from traindyno.core.suite.choices import Task
from traindyno.lab.end_endpoints import Serving
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.serving import ServingSettings

NAME = "traindyno--reviews-c1-abc123"
DEPLOYMENT = ModelDeployment(
    name=NAME,
    execution_id="execution-1",
    run_id="c1-t1",
    job_name="traindyno--reviews-1",
    owner="ada",
    instance_type="ml.c5.xlarge",
    usd_per_hour=Decimal("0.204"),
    created_at=NOW,
    hours=1.0,
)
ROLE = "arn:aws:iam::111111111111:role/serving"
SETTINGS = ServingSettings(
    region="us-east-1", role_arn=ROLE, bucket="results", lab="traindyno", jobs=LabJobs()
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


def client_error(code: str, message: str, operation: str = "an operation") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


@dataclass
class MemorySageMaker:
    """The calls of boto3's clients ``sagemaker`` and ``sagemaker-runtime``.

    ``fault`` may raise before any call.

    New endpoints are ``first_status``. Words in ``wrong`` get another answer than the samples say.
    """

    kept: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {"Model": {}, "EndpointConfig": {}, "Endpoint": {}}
    )
    first_status: str = "InService"
    wrong: set[str] = field(default_factory=set)
    fault: Callable[[str, str], None] = lambda _operation, _name: None

    @property
    def endpoints(self) -> dict[str, Any]:
        return self.kept["Endpoint"]

    def __getattr__(self, call: str) -> Callable[..., Any]:
        """Creates, describes and deletes models, endpoint configurations and endpoints."""
        verb, *words = call.title().split("_")
        if verb not in {"Create", "Describe", "Delete"}:
            raise AttributeError(call)
        kind = "".join(words)

        def answer(**request: Any) -> Any:
            name = request[f"{kind}Name"]
            kept = self.kept[kind]
            self.fault(f"{verb}{kind}", name)
            if verb == "Create" and name in kept:
                raise client_error("ValidationException", "Cannot create already existing resource")
            if verb == "Create":
                status = {"EndpointArn": f"arn:{name}", "EndpointStatus": self.first_status}
                kept[name] = {**request, **(status if kind == "Endpoint" else {})}
            elif name not in kept:
                raise client_error("ValidationException", f"Could not find {kind}.")
            elif verb == "Delete" and kept[name].get("EndpointStatus") == "Creating":
                raise client_error("ValidationException", "Cannot update in-progress endpoint")
            return kept.pop(name) if verb == "Delete" else kept[name]

        return answer

    def list_tags(self, *, ResourceArn: str) -> Any:
        self.fault("ListTags", ResourceArn.removeprefix("arn:"))
        return {"Tags": self.endpoints[ResourceArn.removeprefix("arn:")].get("Tags", [])}

    def get_paginator(self, _operation: str) -> Any:
        return self

    def paginate(self, *, NameContains: str) -> Any:
        self.fault("ListEndpoints", "")
        return [
            {
                "Endpoints": [
                    endpoint for name, endpoint in self.endpoints.items() if NameContains in name
                ]
            }
        ]

    def invoke_endpoint(self, *, EndpointName: str, Body: bytes, **_: Any) -> Any:
        self.fault("InvokeEndpoint", EndpointName)
        word = json.loads(Body)["inputs"].split()[1]
        score = 0.5 if word in self.wrong else 0.9
        predictions = [{"label": word, "score": score}, {"label": "other", "score": 1 - score}]
        return {"Body": BytesIO(json.dumps({"predictions": predictions}).encode())}

    def refuse(self, refused: str, code: str, message: str, name: str | None = None) -> None:
        """Refuses an operation, for every name or for one."""

        def fault(operation: str, asked: str) -> None:
            if operation == refused and name in (None, asked):
                raise client_error(code, message, operation)

        self.fault = fault

    def add(self, name: str, status: str = "InService", **tags: str) -> None:
        """An endpoint with a configuration and a model of its name; ``_`` in the name of a tag
        stands for a colon.
        """
        listed = [{"Key": key.replace("_", ":", 1), "Value": value} for key, value in tags.items()]
        document = {
            "EndpointName": name,
            "EndpointArn": f"arn:{name}",
            "EndpointStatus": status,
            "Tags": listed,
        }
        self.kept["Endpoint"][name] = document
        self.kept["EndpointConfig"][name] = self.kept["Model"][name] = {}


@dataclass
class MemoryServing:
    """The serving of a lab whose training job has left its model and its samples."""

    sagemaker: MemorySageMaker = field(default_factory=MemorySageMaker)
    objects: MemoryObjects = field(default_factory=MemoryObjects)

    def __post_init__(self) -> None:
        self.objects.contents[SAVED_MODEL] = b"the model"
        self.objects.write_json(SAVED_SAMPLES, samples_document(SAMPLES))
        client: Any = self.sagemaker
        self.serving = Serving(
            lab="traindyno", bucket=self.objects, endpoints=Endpoints(client, lambda: client)
        )

    def deploy(self, deployment: ModelDeployment = DEPLOYMENT, **changes: Any) -> str:
        deployment = replace(deployment, **changes)
        deploy_model(deployment, self.serving, SETTINGS, clock=lambda: deployment.created_at)
        return deployment.name
