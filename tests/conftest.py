"""How tests are dealt out to several workers: those that share something slow to make stay
together, longest first.
"""

import gc
import os
from collections.abc import Generator, Iterator

import pytest

from tests.nightly import NIGHTLY, PART, committed_seconds, deal, keep_seconds, parse_part
from tests.sentences import IS_WRITTEN, Snapshot, compare_sentences, flattened

# Fixtures of a session: a local cloud with the deployed app.
SHARED_FIXTURES = ("lab", "chaos")
# Files from this on have a local cloud of their own: all of them one after the other take longer
# than everything else.
SECOND_HALF = "tests/local/test_n"
# Tests whose module has one of these names fork jobs from a process that has imported PyTorch; a
# group shares it.
FORKING = {
    "forked groups": ("run_group", "train_cases", "results_of", "outcomes"),
    "forked jobs": ("run_forked", "run_training", "run_preparation"),
}
# Beginnings of groups: beside tests that wait, those that compute.
ORDER = (
    "forked groups",
    *SHARED_FIXTURES,
    "tests/local/",
    "forked jobs",
    "tests/training/",
    "tests/infra/",
    "tests/browser/",
    "",
)

LOWER_PRIORITY = 5

# Of a part of `make nightly`: the group of each test, and the seconds that each group took.
GROUPS: dict[str, str] = {}
TOOK: dict[str, float] = {}

# The threads of PyTorch spin while they wait for each other: beside other workers they take three
# times the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# xdist sets the width of a terminal for its workers, and the programs that they start would draw
# narrow tables.
os.environ.pop("COLUMNS", None)
# A plan would start a process with PyTorch for each new model: the tests of estimates ask for them.
os.environ.setdefault("TRAINDYNO_NO_MEMORY", "1")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Each worker imports PyTorch, transformers and the CDK while it collects: a million objects
    that stay, and that the garbage collector would go through again and again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not NIGHTLY and "nightly" not in config.option.markexpr:
        left_out = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    if PART:
        keep_part(config, items)
    if hasattr(config, "workerinput"):
        groups = {item: group_of(item) for item in items}
        for item, group in groups.items():
            # --dist loadgroup reads the group from the name. The mark xdist_group sets what pytest
            # 9.2 doesn't read.
            item._id = item.id.parse(f"{item.nodeid}@{group}")
            assert item.nodeid.endswith(f"@{group}")
        items.sort(key=lambda item: place_of(groups[item]))


def keep_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests of this part. The tests of a file, or of a shared fixture, are in one."""
    part, parts = parse_part(PART)
    GROUPS.update({item.nodeid: group_of(item) for item in items})
    own = deal([*GROUPS.values()], committed_seconds(), parts)[part - 1]
    kept = [item for item in items if GROUPS[item.nodeid] in own]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_runtest_logstart(nodeid: str) -> None:
    """Tests of a local cloud are the longest groups, because they wait: a worker of others lets
    them go first.
    """
    group = nodeid.rpartition("@")[2]
    if not group.startswith(SHARED_FIXTURES) and "PYTEST_XDIST_WORKER" in os.environ:
        os.setpriority(os.PRIO_PROCESS, 0, LOWER_PRIORITY)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """With several workers, the name of a test ends with its group."""
    path, _, group = report.nodeid.rpartition("@")
    name = GROUPS.get(report.nodeid, group if path else "")
    if PART and name:
        TOOK[name] = TOOK.get(name, 0.0) + report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keeps what the groups of this part took, by which the parts of later commits are dealt."""
    if TOOK and not hasattr(session.config, "workerinput"):
        keep_seconds(TOOK)


def group_of(item: pytest.Item) -> str:
    """What the test shares with others: a fixture of the session, or a process that forks; else
    its file.
    """
    made = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
    names = vars(getattr(item, "module")).keys()  # noqa: B009
    shared = [
        name for name in SHARED_FIXTURES if name in made and made[name][-1].scope == "session"
    ]
    shared += [group for group, functions in FORKING.items() if not names.isdisjoint(functions)]
    group = shared[0] if shared else item.nodeid.partition("::")[0]
    return f"{group} of the second half" if group == "lab" and item.nodeid > SECOND_HALF else group


def place_of(group: str) -> int:
    return next(place for place, beginning in enumerate(ORDER) if group.startswith(beginning))


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Iterator[Snapshot]:
    """Compares the sentences that the test hands over with those of tests/data/sentences."""
    texts: list[str] = []
    yield lambda *sentences: texts.extend(flattened(sentences))
    difference = compare_sentences(request.path, request.node.name, texts)
    if difference:
        pytest.fail(f"{difference}\nIf this is meant: {IS_WRITTEN}=1 writes it.", pytrace=False)
