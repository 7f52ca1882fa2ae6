"""Damaged descriptions of training jobs end in a suite that is accepted, or in JobNotImportable
with a message.
"""

import json
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.cpu_limit import cpu_limit
from tests.fuzz.mutations import VALUES, damaged_documents, json_of
from tests.properties import examples
from tests.unit.sagemaker.test_request import first_request
from tests.unit.slices.test_imported import CAPTURED, DECISIONS, REQUESTS, Bucket, description
from tests.unit.suites import small_suite
from traindyno.api.suite_text import read_suite_text
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.slices.imported.client import import_described, notes, suggest_axes, suite_text
from traindyno.slices.imported.job import JobNotImportable

MOST_CPU_SECONDS = 10.0
JOBS = [
    *(description(REQUESTS[name]) for name in sorted(REQUESTS)[::3]),
    *(
        description(CAPTURED[name]["request"])
        for name in sorted(CAPTURED)
        if CAPTURED[name].get("request")
    ),
    *[description(first_request(small_suite()))] * 5,
]
# Text of hyperparameters, which the toolkit decodes as JSON.
TEXTS = [
    "3",
    '["a"]',
    "null",
    "{}",
    '{"a": [1, {"b": null}]}',
    "{",
    "[" * 5000,
    '"\\ud800"',
    "1e999",
    "NaN",
    '"/etc"',
]
SDK_NAMES = [
    "sagemaker_submit_directory",
    "sagemaker_program",
    "workload",
    "settings",
    "mp_parameters",
    "x",
]


@st.composite
def damaged_jobs(draw: st.DrawFn) -> Any:
    job: dict[str, Any] = deepcopy(draw(st.sampled_from(JOBS)))
    match draw(st.integers(0, 9)):
        case 0:
            return draw(VALUES)
        case 1 | 2 | 3:
            name = draw(st.sampled_from([*SDK_NAMES, *job["HyperParameters"]]))
            text = draw(st.sampled_from(TEXTS))
            if name in job["HyperParameters"] and draw(st.booleans()):
                values = draw(damaged_documents([decoded(job["HyperParameters"][name])]))
                text = (values and json_of(values[0])) or text
            job["HyperParameters"][name] = text
            return job
        case _:
            return draw(damaged_documents(job))


def decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_damage_ends_in_a_suite_or_in_a_refusal(tmp_path: Path) -> None:
    ends = Counter[bool]()

    @examples(400)
    @given(damaged_jobs(), st.data())
    def import_one(job: Any, data: st.DataObject) -> None:
        with cpu_limit(MOST_CPU_SECONDS):
            ends[put_through(job, data, tmp_path / "suite.yaml")] += 1

    import_one()
    assert ends[True] > ends[False] / 10
    assert ends[False] > ends[True] / 10


def put_through(job: Any, data: st.DataObject, path: Path) -> bool:
    """The importer and all that the command shows; whether there is a suite."""
    documents = [*CAPTURED["basic"]["trainer"]["source_code"].items()]
    code = dict(documents)
    distributed = {"process_count_per_node": None}
    if data.draw(st.integers(0, 2)) == 2:
        code, distributed = (
            data.draw(damaged_documents(original)) for original in (code, distributed)
        )
    texts = {
        name: json_of(document) or "{"
        for name, document in (("sourcecode", code), ("distributed", distributed))
    }
    files = Bucket(**{name: text.encode() for name, text in texts.items()})
    try:
        imported = import_described(job, DECISIONS, s3=files)  # type: ignore[arg-type]
    except JobNotImportable as error:
        assert str(error).encode()  # what can't be printed is no message
        return False
    assert parse_suite(imported.document)
    path.write_text(suite_text(imported, suggest_axes(imported.document)), encoding="utf-8")
    assert read_suite_text(path).document == imported.document
    assert "\n".join(notes(imported)).encode()
    return True
