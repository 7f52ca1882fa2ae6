"""A damaged suite that comes by StartExecution is refused by the name of an error, or planned; no
state fails.

A few executions, in ``make nightly`` 300.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.mutations import damaged_documents
from tests.local.jobs import eventually
from tests.local.local_lab import LocalLab
from tests.nightly import NIGHTLY
from tests.properties import examples
from traindyno.api.suite_text import read_suite_text
from traindyno.core.errors import SuiteInvalid, SuiteRefused
from traindyno.core.s3_keys import plan_key

pytestmark = [pytest.mark.local, pytest.mark.nightly, pytest.mark.timeout(1200)]
COUNT = 300 if NIGHTLY else 8
AT_ONCE = 8
MOST_SECONDS = 120
MOST_INPUT_BYTES = 200_000  # Step Functions takes 256 KiB
SUITES = Path(__file__).parents[2] / "suites"
SHIPPED = sorted(path for path in SUITES.rglob("*.yaml") if path.name != "claims.yaml")


def error_names(error: type[Exception]) -> Iterator[str]:
    yield error.__name__
    for subclass in error.__subclasses__():
        yield from error_names(subclass)


def damaged_inputs() -> Iterator[tuple[str, str]]:
    """The name of an execution and its input, which is JSON, as Step Functions demands it."""
    texts: dict[str, None] = {}

    @examples(3 * COUNT)
    @given(
        st.sampled_from(SHIPPED).flatmap(
            lambda path: damaged_documents(read_suite_text(path).document)
        )
    )
    def collect(document: Any) -> None:
        with suppress(ValueError, RecursionError):
            text = json.dumps(document)
            if len(text) < MOST_INPUT_BYTES and "NaN" not in text and "Infinity" not in text:
                texts[text] = None

    collect()
    yield from (
        (f"damaged-{number}", text) for number, text in enumerate([*texts][:COUNT], start=1)
    )


def end_of(lab: LocalLab, arn: str) -> dict[str, Any]:
    """How the execution ends. One whose suite is planned is stopped."""
    steps = lab.client("stepfunctions")
    s3 = lab.client("s3")
    deployment = lab.deployment()
    deadline = time.monotonic() + MOST_SECONDS
    is_stopped = False
    while (execution := steps.describe_execution(executionArn=arn))["status"] == "RUNNING":
        assert time.monotonic() < deadline, (
            f"{arn} neither ended nor was planned: {execution['input'][:500]}"
        )
        name = arn.rpartition(":")[2]
        planned = s3.list_objects_v2(Bucket=deployment.bucket, Prefix=plan_key(name)).get(
            "KeyCount", 0
        )
        if planned and not is_stopped:
            steps.stop_execution(executionArn=arn, error="Stopped", cause="its suite was planned")
            is_stopped = True
        time.sleep(0.2)
    return dict(execution)


def test_a_damaged_suite_is_refused_by_name_or_planned(lab: LocalLab) -> None:
    steps = lab.client("stepfunctions")
    machine = lab.deployment().state_machine_arn
    refusals = {*error_names(SuiteInvalid), *error_names(SuiteRefused)}
    inputs = list(damaged_inputs())
    ends = Counter[str]()
    for first in range(0, COUNT, AT_ONCE):
        started = {
            steps.start_execution(stateMachineArn=machine, name=name, input=text)[
                "executionArn"
            ]: text
            for name, text in inputs[first : first + AT_ONCE]
        }
        for arn, text in started.items():
            end = end_of(lab, arn)
            error = end.get("error", "") if end["status"] == "FAILED" else end["status"]
            assert error in {*refusals, "ABORTED", "SUCCEEDED"}, (
                f"{error}: {end.get('cause')}: {text[:1000]}"
            )
            ends["refused" if error in refusals else "planned"] += 1
    assert ends["refused"] > COUNT / 3, ends
    # The event of an execution's end stops its jobs.
    asked = {"NameContains": "damaged-", "StatusEquals": "InProgress"}
    eventually(
        lambda: not lab.client("sagemaker").list_training_jobs(**asked)["TrainingJobSummaries"],
        MOST_SECONDS,
    )
