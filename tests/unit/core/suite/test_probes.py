"""Which runs end with probes, and which suites may ask for them."""

from typing import Any

import pytest

from tests.unit.suites import script_document, small_document
from traindyno.core.errors import SuiteInvalid
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.sagemaker.launcher import own_hyperparameters


def probed_trials(measurement: dict[str, Any]) -> list[int]:
    """The trials whose jobs are told to probe."""
    suite = parse_suite(small_document(measurement=measurement))
    runs = trial_runs("e", suite.cells[:1], range(1, suite.measurement.trials + 1))
    found = [own_hyperparameters(run, suite) for run in runs]
    assert not any("probes" in each["measurement"] for each in found)
    return [run.trial for run, each in zip(runs, found, strict=True) if each["probes"]]


@pytest.mark.parametrize(
    ("measurement", "expected"),
    [
        ({"trials": 5, "probes": True}, [2]),
        ({"trials": 2, "probes": True}, [2]),
        ({"trials": 1, "probes": True}, [1]),
        ({"trials": 5}, []),
    ],
)
def test_the_second_trial_of_a_cell_is_probed_or_its_only_one(
    measurement: dict[str, Any], expected: list[int]
) -> None:
    assert probed_trials(measurement) == expected


def test_a_script_has_no_probes() -> None:
    with pytest.raises(
        SuiteInvalid, match=r"measurement\.probes: a script's steps can't be probed, expected false"
    ):
        parse_suite(script_document(measurement={"probes": True}))
