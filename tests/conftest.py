"""How tests are dealt out to several workers: those that share something slow to make stay together, longest first."""

import gc
import os
from collections.abc import Generator

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.nightly import NIGHTLY

SEEDS = "tests/local/test_chaos_seeds.py"
# Beginnings of paths; the first that fits names the group, and groups are begun in this order: beside tests that wait,
# those that compute.
GROUPS = {
    "tests/training/test_strategies.py": "strategies",
    "tests/training/test_strategy_table.py": "strategies",
    "tests/local/test_damaged_executions.py": "lab",
    "tests/local/test_data_preparation.py": "lab",
    "tests/local/test_edge_adapters.py": "lab",
    "tests/local/test_end_to_end.py": "lab",
    "tests/local/test_guard.py": "lab",
    "tests/local/test_hub_model.py": "lab",
    "tests/local/test_money_commands.py": "lab",
    "tests/local/test_notebooks.py": "lab",
    "tests/local/test_other_users.py": "lab",
    "tests/local/test_permissions.py": "lab",
    "tests/local/test_python_page.py": "lab",
    "tests/local/test_reference_suites.py": "lab",
    "tests/local/test_serving.py": "lab",
    "tests/local/test_serving_permissions.py": "lab",
    "tests/local/test_smoke.py": "lab",
    "tests/local/test_store_contract.py": "lab",
    SEEDS: "",
    "tests/local/test_chaos.py": "chaos",
    "tests/local/test_cost_stopped.py": "chaos",
    "tests/local/test_rates.py": "chaos",
    "tests/local/test_throttling.py": "chaos",
    "tests/local/test_warm_runs.py": "chaos",
    "tests/local/": "",
    "tests/training/": "",
    "tests/infra/": "infra",
    "tests/browser/": "",
    "tests/": "",
}
ORDER = list(GROUPS)


class TogetherScheduling(LoadScopeScheduling):
    """Scopes are groups, or files where a file has no group. Each seed of faults is a group of its own."""

    def _split_scope(self, nodeid: str) -> str:
        path = path_of(nodeid)
        if path == SEEDS:
            return f"seed {nodeid.partition('[')[2].rstrip(']').partition('-')[0]}"
        return GROUPS[beginning_of(path)] or path


# The threads of PyTorch spin while they wait for each other: beside other workers they take three times the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Each worker imports PyTorch, transformers and the CDK while it collects: a million objects that stay, and that
    the garbage collector would go through again and again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> TogetherScheduling:
    return TogetherScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not NIGHTLY and "nightly" not in config.option.markexpr:
        left_out = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: ORDER.index(beginning_of(path_of(item.nodeid))))


def path_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def beginning_of(path: str) -> str:
    return next(beginning for beginning in GROUPS if path.startswith(beginning))
