"""A script's arguments are any JSON values: stored and sent as they were written, and told
apart.
"""

import datetime
import json
import re
import string
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.run_samples import completed_result
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.suites import script_document
from traindyno.core.documents.stored import frozen_json
from traindyno.core.errors import SuiteInvalid
from traindyno.core.jobs.job import owner_document, parse_owner
from traindyno.core.planning.jobs import share_jobs
from traindyno.core.planning.refusals import refuse_arguments
from traindyno.core.suite.arguments import arguments_of, command_arguments
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import structure_suite, suite_document
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.report_data import Report, parse_report, report_document
from traindyno.sagemaker.request import build_training_job_request

PLAIN = st.sampled_from([None, True, False, 0, 1, -3, 2.5, 1e-5, "", "two words", "[/INST]", "1"])
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner)
)
SAFE = string.ascii_letters + string.digits + "_-+=:,./@%^éß"


def suite_of(values: list[Any], for_all: Any) -> Suite:
    document = script_document(
        matrix={"instance": ["ml.g5.xlarge"], "hyperparameters.varied": values}
    )
    document["workload"]["hyperparameters"] = {"same": for_all}
    return structure_suite(document)


@given(st.lists(VALUES, min_size=1, max_size=6, unique_by=json.dumps), VALUES)
def test_values_of_any_shape_reach_the_job_and_are_cells_of_their_own(
    values: list[Any], for_all: Any
) -> None:
    suite = suite_of(values, for_all)
    assert structure_suite(json.loads(json.dumps(suite_document(suite)))) == suite
    cells = suite.cells
    assert len({cell.cell_id for cell in cells}) == len(values)
    runs = {run.cell.cell_id: run for run in trial_runs("e", cells, [1])}
    for value, cell in zip(values, cells, strict=True):
        run = runs[cell.cell_id]
        assert parse_owner(json.loads(json.dumps(owner_document(run)))) == run
        sent = build_training_job_request(run, suite, attempt=1, settings=SETTINGS)[
            "HyperParameters"
        ]
        assert json.loads(sent["varied"]) == value
        assert json.loads(sent["same"]) == for_all


def test_a_verdict_and_a_report_hold_them() -> None:
    suite = suite_of([[1, 2], {"beta": 0.9, "layers": [1]}, None], [[]])
    cells = suite.cells
    assert [cell.label for cell in cells] == [
        "varied [1, 2]",
        'varied {"beta": 0.9, "layers": [1]}',
        "varied default",
    ]
    results = [completed_result(cell, trial, suite=suite) for cell in cells for trial in (1, 2, 3)]
    verdict = judge(suite, cells, results)
    report = Report(
        execution_id="e",
        created_at=0.0,
        suite=suite,
        cells=cells,
        verdict=verdict,
        results=tuple(results),
    )
    assert parse_report(json.loads(json.dumps(report_document(report)))).cells == cells


@pytest.mark.parametrize(
    "value", [datetime.date(2026, 1, 1), [datetime.date(2026, 1, 1)], {1: 2}, {"a": {1, 2}}]
)
def test_values_beyond_json_are_refused(value: Any) -> None:
    document = script_document()
    document["workload"]["hyperparameters"] = {"day": value}
    with pytest.raises(
        SuiteInvalid, match=r"hyperparameters.day: got .*, expected text, a number, true, false"
    ):
        parse_suite(document)


def test_one_configuration_needs_no_matrix() -> None:
    document = script_document(training={"instance": "local.cpu", "strategy": "single"})
    del document["matrix"]
    (cell,) = parse_suite(document).cells
    assert (cell.settings.instance, cell.label) == ("local.cpu", "local.cpu")
    with pytest.raises(
        SuiteInvalid,
        match=r"baseline.strategy: got .*, expected an axis of the matrix: it has none",
    ):
        parse_suite({**document, "baseline": {"strategy": "single"}})


def test_values_are_told_apart_as_json() -> None:
    assert frozen_json({"a": [1, {"b": None}]}) == {"a": (1, {"b": None})}
    assert (
        len({frozen_json(value) for value in ({"a": [1]}, {"a": [1.0]}, {"a": [2]}, [1], None)})
        == 4
    )


def test_parameters_of_the_model_parallel_library_may_be_a_mapping() -> None:
    document = script_document(matrix={"instance": ["ml.p4d.24xlarge"]})
    document["workload"]["image"] = "111111111111.dkr.ecr.us-east-1.amazonaws.com/mine:1"
    document["workload"]["hyperparameters"] = {"mp_parameters": {"ddp": True, "partitions": 2}}
    suite = parse_suite(document)
    (run,) = trial_runs("e", suite.cells, [1])
    sent = build_training_job_request(run, suite, attempt=1, settings=SETTINGS)["HyperParameters"]
    assert json.loads(sent["mp_parameters"]) == {"ddp": True, "partitions": 2}


def script_suite(jobs: str, *, matrix: dict[str, Any] | None = None, **arguments: Any) -> Suite:
    document = script_document(measurement={"jobs": jobs, "trials": 1})
    document["matrix"] |= matrix or {}
    document["workload"] |= {"source": str(Path(__file__).parent), "entry_point": "train.py"}
    document["workload"]["hyperparameters"] = arguments
    return structure_suite(document)


@given(text=st.text(alphabet=SAFE + " ;&|<>()$`\"'\\*?[]#~{}\n", max_size=12))
def test_an_argument_is_refused_if_a_shell_would_change_it(text: str) -> None:
    """The toolkit of a job of its own may join the words and give the line to a shell.

    What is accepted there reaches the script unchanged. The parent of a shared job has no shell.
    """
    suite = script_suite("separate", text=text)
    (cell,) = suite.cells
    refusals = [*refuse_arguments(suite)]
    if refusals:
        assert refusals[0].startswith("workload.hyperparameters.text: got ")
        assert set(text) - set(SAFE) or not text
        shared = script_suite("shared", text=text)
        assert not [*refuse_arguments(shared)]
        (job,) = share_jobs(trial_runs("e", [cell], [1]), shared)
        assert job.is_shared
        return
    line = " ".join(command_arguments(arguments_of(cell, suite.workload)))
    printed = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True
    )
    assert printed.stdout.splitlines() == ["--text", text]


@pytest.mark.parametrize("value", [None, "a b", [1, 2], {"a": [1, 2]}])
def test_refused_arguments_name_the_character_and_their_place(value: Any) -> None:
    suite = script_suite("separate", matrix={"hyperparameters.x": [value, 1]})
    (refusal,) = refuse_arguments(suite)
    assert re.match(
        r"matrix.hyperparameters.x: got .*\(measurement.jobs is separate\), where .* to a shell "
        r"without quotes, which would read ",
        refusal,
    )
