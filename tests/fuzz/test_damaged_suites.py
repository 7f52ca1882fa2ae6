"""Damaged suites and requests end in a refusal with a message: no traceback, no hang, nothing that
can't be stored.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from boto3.dynamodb.types import TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from lambdas.plan_suite import handler as plan_suite
from localcloud.sagemaker_service.api.http_server import Api, read_document
from localcloud.sagemaker_service.api.training_jobs_api import TrainingJobsApi
from localcloud.sagemaker_service.api_error import ApiError
from localcloud.sagemaker_service.clock import SystemClock
from localcloud.sagemaker_service.jobs.job import Engine
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.jobs.quota_table import QuotaTable
from localcloud.sagemaker_service.service import EXTRA_VALUES
from tests.fuzz.cpu_limit import cpu_limit
from tests.fuzz.mutations import damaged_documents, damaged_texts, json_of
from tests.properties import examples
from tests.unit.sagemaker.test_request import SETTINGS
from traindyno.api.suite_loading import Suite, SuiteFileInvalid, load_suite
from traindyno.api.suite_text import SuiteUnreadable, read_suite_text
from traindyno.aws import clients
from traindyno.aws.prices import PriceSource
from traindyno.core.costs.prices import Price
from traindyno.core.suite.preparation import needed_tokens
from traindyno.core.suite.runs import trial_runs
from traindyno.lab import plan_suite as plan_suite_use_case
from traindyno.sagemaker.launcher import SourceMissing
from traindyno.sagemaker.request import build_training_job_request

SUITES = Path(__file__).parents[2] / "suites"
SHIPPED = sorted(path for path in SUITES.rglob("*.yaml") if path.name != "claims.yaml")
MOST_CPU_SECONDS = 10.0
ENVIRONMENT = {
    "AWS_REGION": "us-east-1",
    "BUCKET": "b",
    "LAB": "traindyno",
    "SECONDS_BETWEEN_STARTS": "1.05",
    "SOURCE_S3_URI": "s3://b/c",
    "TABLE": "t",
    "TRAINING_ROLE_ARN": "arn:aws:iam::111111111111:role/training",
}
SERVICE = botocore.session.get_session().get_service_model("sagemaker")


class Table:
    """It refuses the values of a row that DynamoDB refuses."""

    def put_item(self, *, Item: dict[str, Any], **_: Any) -> None:
        TypeSerializer().serialize(Item)

    def get_item(self, **_: Any) -> dict[str, Any]:
        return {}

    def query(self, **_: Any) -> dict[str, Any]:
        return {"Items": []}


class Objects:
    """Like S3, it takes documents as bytes."""

    def put_object(self, *, Body: bytes, **_: Any) -> None:
        json.loads(Body)

    def copy_object(self, **_: Any) -> None:
        """The training code is no document."""


def prices(source: PriceSource, instance_types: Any) -> dict[str, Price]:
    price = Price(
        instance_type="", region=source.region, usd_per_hour=Decimal("1.5"), as_of="", source="test"
    )
    return {name: replace(price, instance_type=name) for name in instance_types}


@pytest.fixture(autouse=True)
def lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """PlanSuite's surroundings, without a network."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(clients, "s3", Objects)
    monkeypatch.setattr(clients, "table", lambda _: Table())
    monkeypatch.setattr(PriceSource, "read", prices)
    monkeypatch.setattr(plan_suite_use_case, "plan_tokens", lambda suite, **_: needed_tokens(suite))


class NoEngine:
    def wake(self, name: str) -> None:
        """No job of this test runs."""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    store = JobStore(tmp_path / "state.sqlite", lambda _: [])
    jobs = TrainingJobsApi(
        store=store,
        quotas=QuotaTable(store, 1000),
        clocks=dict.fromkeys(Engine, SystemClock()),
        engines=dict.fromkeys(Engine, NoEngine()),
        engine_for=lambda _: Engine.REPLAY,
    )
    yield Api(SERVICE, jobs.operations(), EXTRA_VALUES)
    store.close()


def test_a_null_member_is_absent(api: Api) -> None:
    suite = load_suite(SHIPPED[0]).suite
    run = trial_runs("execution-1", suite.cells[:1], [1])[0]
    request = build_training_job_request(run, suite, attempt=1, settings=SETTINGS)
    config = {**request["CheckpointConfig"], "LocalPath": None}
    api.answer("CreateTrainingJob", {**request, "CheckpointConfig": config, "Tags": None})
    asked = {"TrainingJobName": request["TrainingJobName"]}
    described = api.answer("DescribeTrainingJob", asked)
    assert described["CheckpointConfig"] == {"S3Uri": config["S3Uri"]}


def test_damage_ends_in_a_refusal(tmp_path: Path, api: Api) -> None:
    ends = Counter[bool]()

    @examples(300)
    @given(st.data())
    def put_through(data: st.DataObject) -> None:
        with cpu_limit(MOST_CPU_SECONDS):
            ends[_put_through(data, tmp_path, api)] += 1

    put_through()
    assert ends[True], (
        "the damage never left a suite whole, so that nothing behind the reader was tried"
    )
    assert ends[False] > ends[True] / 10


@cache
def document_of(path: Path) -> dict[str, Any]:
    return read_suite_text(path).document


def _put_through(data: st.DataObject, folder: Path, api: Api) -> bool:
    """Reader, handler and local API; whether the handler accepted the suite."""
    shipped = data.draw(st.sampled_from(SHIPPED))
    text = shipped.read_text(encoding="utf-8")
    if data.draw(st.booleans()):
        damaged = data.draw(damaged_documents(document_of(shipped)))
        text = json_of(damaged) or text
    else:
        text = data.draw(damaged_texts(text))
        damaged = None
    loaded = _load(folder / "suite.yaml", text)
    if damaged is None:
        if loaded is None:
            return False
        damaged = loaded.document
    answer = plan_suite.handle({"execution_id": "e", "suite": damaged}, None)
    if loaded is not None:
        _send_jobs(loaded, data, api)
    return "refused" not in answer


def _load(path: Path, text: str) -> Suite | None:
    path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    try:
        return load_suite(path)
    except (SuiteUnreadable, SuiteFileInvalid) as error:
        str(error).encode("utf-8")  # what can't be printed is no message
        assert str(error)
        return None


def _send_jobs(loaded: Suite, data: st.DataObject, api: Api) -> None:
    run = trial_runs("execution-1", loaded.suite.cells[:1], [1])[0]
    try:
        request = build_training_job_request(run, loaded.suite, attempt=1, settings=SETTINGS)
    except SourceMissing:
        return  # the source of a script is not in S3 yet
    for sent in (request, data.draw(damaged_documents(request))):
        body = json_of(sent)
        try:
            api.answer("CreateTrainingJob", read_document((body or "[" * 3000).encode()))
        except ApiError as error:
            assert str(error)
