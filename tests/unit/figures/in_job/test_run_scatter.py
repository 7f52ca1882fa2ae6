"""The scatter of single runs that is assumed, by kind of machine."""

from math import hypot

import pytest

from traindyno.callbacks.environment import environment_facts
from traindyno.core.instances.instance_types import instance_types
from traindyno.core.step_log.line import SCATTER, SCATTER_VARIABLE
from traindyno.figures.in_job.run_scatter import (
    ACCELERATORS,
    CPUS,
    SEEDS,
    THIS_MACHINE,
    measured_scatter,
    run_scatter,
)


def test_each_type_of_the_catalogue_has_the_scatter_of_its_kind() -> None:
    for name, kind in instance_types().items():
        of_aws = ACCELERATORS if kind.has_accelerator else CPUS
        assert run_scatter(name).share == (THIS_MACHINE if kind.is_local else of_aws), name


def test_a_measurement_replaces_the_assumption_of_this_machine_only() -> None:
    assert run_scatter("local.cpu", 0.02).share == 0.02
    assert run_scatter("ml.g5.xlarge", 0.02).share == ACCELERATORS


def test_seeds_add_to_the_scatter_of_a_quality() -> None:
    assert run_scatter("ml.c7i.large", has_target=True).share == hypot(CPUS, SEEDS)


@pytest.mark.parametrize(
    ("text", "share"),
    [("0.034", 0.034), (None, None), ("much", None), ("0", None), ("-1", None), ("nan", None)],
)
def test_a_share_is_measured_and_nothing_else(text: object, share: float | None) -> None:
    assert measured_scatter(text) == share


def test_the_log_of_a_run_tells_the_measured_scatter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SCATTER not in environment_facts()
    monkeypatch.setenv(SCATTER_VARIABLE, "0.034")
    assert measured_scatter(environment_facts()[SCATTER]) == 0.034
