"""A stored document that was damaged is refused with its key, whatever the damage, or read."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.mutations import VALUES, damaged_documents, json_of
from tests.properties import examples
from tests.unit.lab_in_memory import EXECUTION, MemoryLab
from tests.unit.planned_lab import judge_execution, measure, planned
from tests.unit.serving_in_memory import SAMPLES
from traindyno.core.documents.versions import VersionUnknown
from traindyno.core.measurement.run_result import parse_run_result
from traindyno.core.planning.plan import read_stored_plan
from traindyno.core.planning.waves import run_ids_of
from traindyno.core.s3_keys import plan_key, report_data_key, results_prefix, suite_key, verdict_key
from traindyno.core.serving.samples import parse_samples, samples_document
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.core.verdict.report_data import parse_report
from traindyno.core.verdict.verdict import parse_verdict
from traindyno.lab.plan_round import plan_next_round
from traindyno.store.results import load_results
from traindyno.store.results_bucket import StoredDocumentDamaged

KINDS: dict[str, Callable[[Any], object]] = {
    "suite": read_stored_suite,
    "plan": read_stored_plan,
    "wave": run_ids_of,
    "result": parse_run_result,
    "verdict": parse_verdict,
    "report": parse_report,
    "samples": parse_samples,
}


@cache
def judged() -> tuple[MemoryLab, dict[str, str]]:
    """A lab with a judged execution, and the key of a document of each kind."""
    lab = planned(4)
    (lane,) = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)["lanes"]
    wave = lane["packs"][0]["items_key"]
    for item in lab.bucket.read_json(wave):
        measure(lab, item)
    judge_execution(lab)
    lab.bucket.write_json("samples.json", samples_document(SAMPLES))
    result, *_ = lab.bucket.list_keys(results_prefix(EXECUTION))
    keys = (
        suite_key(EXECUTION),
        plan_key(EXECUTION),
        wave,
        result,
        verdict_key(EXECUTION),
        report_data_key(EXECUTION),
    )
    return lab, dict(zip(KINDS, (*keys, "samples.json"), strict=True))


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A bit that flipped, an end that is missing, and values of another type or none in some
    places.
    """
    at = draw(st.integers(0, len(content) - 1))
    match draw(st.integers(0, 3)):
        case 0:
            return (
                content[:at]
                + bytes([content[at] ^ 1 << draw(st.integers(0, 7))])
                + content[at + 1 :]
            )
        case 1:
            return content[:at]
        case 2:
            document = draw(damaged_documents(json.loads(content)))
        case _:
            document = draw(VALUES)
    return (json_of(document) or "[" * 100_000).encode()


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_told_with_the_key_or_does_no_harm(kind: str) -> None:
    lab, keys = judged()
    key = keys[kind]
    content = lab.objects.contents[key]
    assert lab.bucket.read_as(key, KINDS[kind])
    refused = []

    @examples(60)
    @given(damaged(content))
    def read(damage: bytes) -> None:
        lab.objects.contents[key] = damage
        try:
            lab.bucket.read_as(key, KINDS[kind])
        except StoredDocumentDamaged as error:
            refused.append(str(error))
            assert str(error).startswith(f"s3://results/{key} is damaged: "), error
        except VersionUnknown as error:
            refused.append(str(error))
            assert str(error).startswith(f"s3://results/{key}: "), error

    try:
        read()
    finally:
        lab.objects.contents[key] = content
    assert len(refused) > 20


def test_a_damaged_value_is_named_with_its_place() -> None:
    lab = planned(4)
    document = lab.bucket.read_json(suite_key(EXECUTION))
    lab.bucket.write_json(
        suite_key(EXECUTION), {**document, "limits": {**document["limits"], "max_usd": []}}
    )
    with pytest.raises(
        StoredDocumentDamaged, match=r"suite\.json is damaged: limits\.max_usd: got a list"
    ):
        plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)


def test_a_damaged_result_does_not_pass_as_none() -> None:
    lab, keys = judged()
    content = lab.objects.contents[keys["result"]]
    lab.objects.contents[keys["result"]] = content[:-1]
    try:
        with pytest.raises(StoredDocumentDamaged, match=keys["result"]):
            load_results(lab.bucket, EXECUTION)
    finally:
        lab.objects.contents[keys["result"]] = content
