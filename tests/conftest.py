"""How tests are dealt out to several workers: those that share something slow to make stay together, longest first."""

import pytest

TOGETHER = {
    "tests/infra/": "infra",
    "tests/training/test_strategies.py": "strategies",
    "tests/training/test_strategy_table.py": "strategies",
}
LONGEST_FIRST = ("strategies", "lab", "tests/local", "tests/training", "infra", "tests/browser", "tests/unit")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("dist", "no") == "no":
        return
    groups = {item: group_of(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: place(groups[item]))


def group_of(item: pytest.Item) -> str:
    if "lab" in getattr(item, "fixturenames", ()):
        return "lab"
    path = item.nodeid.partition("::")[0]
    return next((group for start, group in TOGETHER.items() if path.startswith(start)), path)


def place(group: str) -> int:
    return next(number for number, start in enumerate(LONGEST_FIRST) if group.startswith(start))
