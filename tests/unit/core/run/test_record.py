"""What a container gets of its run is what the lab has, and earlier code reads it too."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.suites import small_document
from traindyno.core.documents.versions import VersionUnknown
from traindyno.core.run.record import (
    PreparationRecord,
    QualityTarget,
    RecordDiffers,
    RunMeasurement,
    RunRecord,
    read_record,
    record_document,
)
from traindyno.core.run.settings import Adapter, BatchSearch, LearningRate, Settings
from traindyno.core.run.tokens import DataPreparation, Tokens
from traindyno.core.run.workload import Model, Workload
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import BatchChoice, Quality, Task
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Measurement
from traindyno.core.suite.suite_file import parse_part
from traindyno.sagemaker.launcher import own_hyperparameters

WORKLOAD = Workload(task=Task.CAUSAL_LM, examples=100, model=Model(config={"layers": [1, 2]}))
HALF_A_STEP: Any = 2.5
RECORD = RunRecord(
    run_id="a-t1",
    workload=WORKLOAD,
    settings=Settings(
        instance="local.cpu", learning_rate=LearningRate(base=1e-3), adapter=Adapter(rank=8)
    ),
    measurement=RunMeasurement(max_steps=10, warmup=2),
    tokens=Tokens(key="k"),
    target=QualityTarget(quality=Quality.LOSS, value=2.5),
    trial_seed=7,
)


def as_sent(record: RunRecord | PreparationRecord) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(record_document(record)))
    return document


def test_a_container_reads_the_labs_record() -> None:
    assert read_record(as_sent(RECORD), RunRecord) == RECORD
    preparation = DataPreparation(execution_id="e", instance="local.cpu", key="k", packing=True)
    asked = PreparationRecord(preparation=preparation, workload=WORKLOAD)
    assert read_record(as_sent(asked), PreparationRecord) == asked


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workload": replace(WORKLOAD, model=Model(config={"sizes": (1, 2)}))}, "workload: a con"),
        (
            {"measurement": RunMeasurement(max_steps=HALF_A_STEP)},
            "measurement: a container would read",
        ),
    ],
)
def test_records_misread_by_a_container_are_refused_by_the_lab(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(RecordDiffers, match=words):
        record_document(replace(RECORD, **changes))


def test_fields_of_later_code_are_ignored_and_another_version_is_refused() -> None:
    document = as_sent(RECORD)
    later = {**document, "mood": 1, "settings": {**document["settings"], "mood": 1}}
    assert read_record(later, RunRecord) == RECORD
    with pytest.raises(VersionUnknown, match="record of a run: got version 2 of another"):
        read_record({**document, "version": 2}, RunRecord)


@pytest.mark.parametrize(
    "document",
    [
        small_document(),
        small_document(
            training={
                "instance": "local.cpu",
                "learning_rate": 0.001,
                "adapter": {"rank": 8, "targets": "all-linear"},
            },
            measurement={"stop_when": {"relative_half_width": 0.01}, "evaluate": True},
            baseline={},
        ),
    ],
)
def test_an_execution_of_earlier_code_reads_it_with_the_suites_parsers(
    document: dict[str, Any],
) -> None:
    """A continued execution keeps its training code, whose parsers refuse unknown fields."""
    suite = parse_suite(document)
    (run, *_) = trial_runs("e", suite.cells, [1])
    sent = json.loads(json.dumps(own_hyperparameters(run, suite)))
    read = read_record(sent, RunRecord)
    assert parse_part(sent["settings"], Settings) == read.settings
    assert parse_part(sent["workload"], Workload) == read.workload
    assert parse_part(sent["measurement"], Measurement).max_steps == read.measurement.max_steps


def test_a_search_of_the_batch_is_written_too() -> None:
    """The estimate of its memory asks for it."""
    settings = replace(
        RECORD.settings, batch_size_per_device=BatchSearch(search=BatchChoice.LARGEST)
    )
    assert read_record(as_sent(replace(RECORD, settings=settings)), RunRecord).settings == settings
