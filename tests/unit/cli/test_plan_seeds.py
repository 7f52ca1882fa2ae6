from typing import Any

import pytest

from tests.unit.suites import script_document, unprepared_document
from traindyno.cli.display.plan_totals import seeds_text
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.checks.suite_check import parse_suite

EACH = "7 to 9, one for each trial, the same in all cells"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (unprepared_document(), EACH),
        (unprepared_document(measurement={"trials": 1}), "7"),
        (unprepared_document(matrix={"seed": [1, 5]}), "those of the cells, in all trials: the suite compares seeds"),
        (
            script_document(),
            f"{EACH}, in TRAINDYNO_SEED; if the script does not take it, losses and quality hold for its own seed only",
        ),
        (
            script_document(measurement={"trials": 3, "seed_argument": "random-seed"}),
            f"{EACH}, as the argument random-seed",
        ),
    ],
    ids=["built in", "one trial", "axis", "script", "argument"],
)
def test_a_plan_names_the_seeds_of_the_trials(document: dict[str, Any], expected: str) -> None:
    is_axis = "seed" in document["matrix"]
    training = {**document["training"], **({} if is_axis else {"seed": 7})}
    measurement = {"trials": 3, **(document["measurement"] if document["measurement"] != {"trials": 2} else {})}
    baseline = {} if is_axis else document["baseline"]
    suite = parse_suite({**document, "training": training, "measurement": measurement, "baseline": baseline})
    assert seeds_text(suite, expand_cells(suite)[0].settings.seed) == expected
