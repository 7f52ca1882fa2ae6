"""A stored document of another version is refused with what was found and what is accepted."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.sentences import Snapshot
from tests.unit.run_samples import make_cell, make_run, make_suite
from traindyno.core.documents.plain import plain_values
from traindyno.core.documents.versions import Format, VersionUnknown
from traindyno.core.jobs.job import Job
from traindyno.core.measurement.run_result import parse_preparation_result, parse_run_result
from traindyno.core.planning.jobs import separate_job
from traindyno.core.planning.plan import read_stored_plan
from traindyno.core.planning.waves import run_ids_of, wave_items
from traindyno.core.run.settings import BatchSearch, LearningRate, Settings
from traindyno.core.run.tokens import describe_mismatch, tokens_manifest
from traindyno.core.serving.samples import parse_samples
from traindyno.core.suite.choices import BatchChoice, Compiler, Precision, Strategy
from traindyno.core.suite.preparation import (
    TokensMarker,
    parse_tokens_marker,
    tokens_marker_document,
)
from traindyno.core.suite.suite_file import parse_part, read_stored_suite
from traindyno.core.verdict.report_data import parse_report
from traindyno.core.verdict.verdict import parse_verdict

TIMES = Format(name="times", version=3)
READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "stored suite": read_stored_suite,
    "stored plan": read_stored_plan,
    "run result": parse_run_result,
    "verdict": parse_verdict,
    "report data": parse_report,
    "preparation result": parse_preparation_result,
    "evaluation samples": parse_samples,
    "tokens marker": parse_tokens_marker,
    "wave item": lambda document: run_ids_of([document]),
}


@pytest.mark.parametrize(
    ("version", "says"),
    [
        (5, "times: got version 5 of another Traindyno, expected 3"),
        (True, "times: got version true of another Traindyno, expected 3"),
        ("3", 'times: got version "3" of another Traindyno, expected 3'),
        (None, "times: got no version, expected 3"),
    ],
)
def test_another_version_is_refused(version: object, says: str) -> None:
    with pytest.raises(VersionUnknown) as refused:
        TIMES.read({"version": version})
    assert str(refused.value) == says


@pytest.mark.parametrize("name", READERS)
def test_every_stored_document_of_another_version_is_refused_by_name(name: str) -> None:
    with pytest.raises(
        VersionUnknown, match=rf"^{name}: got version 99 of another Traindyno, expected 1$"
    ):
        READERS[name]({"version": 99})


@examples(100)
@given(
    st.builds(
        Settings,
        instance=st.sampled_from(["local.cpu", "ml.p4d.24xlarge"]),
        instance_count=st.integers(1, 64),
        strategy=st.sampled_from(Strategy),
        precision=st.sampled_from(Precision),
        compiler=st.sampled_from(Compiler),
        batch_size_per_device=st.integers(1, 4096)
        | st.just(BatchSearch(search=BatchChoice.LARGEST)),
        global_batch_size=st.none() | st.integers(1, 10**6),
        gradient_clip_norm=st.none() | st.floats(1e-6, 1e6),
        dropout=st.none() | st.floats(0, 0.99),
        learning_rate=st.builds(
            LearningRate, base=st.floats(1e-9, 10), reference_batch_size=st.integers(1, 10**6)
        ),
    )
)
def test_written_settings_are_read_alike(settings: Settings) -> None:
    written = json.loads(json.dumps(plain_values(settings)))
    assert parse_part(written, Settings) == settings


def test_tokens_of_another_version_are_a_mismatch(snapshot: Snapshot) -> None:
    manifest = tokens_manifest("k", {})
    assert describe_mismatch(manifest, key="k") is None
    snapshot(describe_mismatch({**manifest, "version": 9}, key="k"))


def test_a_tokens_marker_has_a_version_and_is_read_alike() -> None:
    marker = TokensMarker(s3_uri="s3://results/tokens/k/job/", made_at=1_790_000_000.5)
    document = tokens_marker_document(marker)
    assert document.pop("version") == 1
    assert parse_tokens_marker({**document, "version": 1}) == marker


def test_the_items_of_a_wave_are_a_list_and_each_has_a_version() -> None:
    """Step Functions reads the items of a Distributed Map from a list only."""
    runs = [make_run(make_cell(), trial) for trial in (1, 2)]
    items = wave_items(map(separate_job, runs), make_suite().limits)
    assert [item.pop("version") for item in items] == [1, 1]
    assert run_ids_of([{**item, "version": 1} for item in items]) == ("0000000a-t1", "0000000a-t2")
    shared = wave_items(
        [Job(execution_id="e", job_id="j1-b1", runs=tuple(runs))], make_suite().limits
    )
    assert run_ids_of(shared) == ("0000000a-t1", "0000000a-t2")
