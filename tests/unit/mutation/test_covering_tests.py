"""Which tests are tried against a mutant, and in which order."""

from tests.mutation.covering_tests import CoveringTests, Record
from tests.mutation.trials import FILES_AT_FIRST, TESTS_AT_FIRST, in_turn

CORE = "traindyno/core/costs/money.py"
OWN, ROOM, FAR = (
    f"tests/unit/{name}.py" for name in ("core/costs/test_money", "core/costs/test_receipt", "lab/test_submit_run")
)


def record(file: str, *, lines: dict[str, list[str]], **seconds: float) -> Record:
    return Record(
        digests={},
        seconds={f"{file}::{name}": spent for name, spent in seconds.items()},
        starting_processes=[f"{file}::slow"] if "slow" in seconds else [],
        lines={CORE: {line: [f"{file}::{name}" for name in names] for line, names in lines.items()}},
    )


def covering(*at_import: tuple[str, int]) -> CoveringTests:
    records = {
        FAR: record(FAR, lines={"3": ["x"]}, x=0.1, slow=9.0),
        ROOM: record(ROOM, lines={"3": ["late", "quick"]}, late=2.0, quick=0.5),
        OWN: record(OWN, lines={"3": ["y"], "9": ["y"]}, y=5.0),
    }
    return CoveringTests(records=records, at_import=frozenset(at_import))


def test_tests_of_the_module_come_first_then_those_of_its_room_by_their_time() -> None:
    assert covering().of(CORE, 3) == [f"{OWN}::y", f"{ROOM}::quick", f"{ROOM}::late", f"{FAR}::x"]
    assert covering().of(CORE, 9) == [f"{OWN}::y"]
    assert covering().files(CORE) == [OWN, ROOM, FAR]


def test_a_line_of_a_function_is_tried_by_its_tests_and_those_that_start_processes() -> None:
    assert in_turn(CORE, 9, covering()) == [[f"{OWN}::y"], [f"{FAR}::slow"]]


def test_a_line_that_runs_at_import_or_that_no_test_executes_is_tried_by_all() -> None:
    assert in_turn(CORE, 9, covering((CORE, 9))) == [[f"{OWN}::y"], [OWN, ROOM, FAR]]
    assert in_turn(CORE, 4, covering()) == [[OWN, ROOM, FAR]]


def test_many_tests_and_files_are_tried_in_two_turns() -> None:
    names = {f"t{index:03}": 0.1 for index in range(TESTS_AT_FIRST + 1)}
    files = [f"tests/unit/lab/test_{index:03}.py" for index in range(FILES_AT_FIRST + 1)]
    records = {file: record(file, lines={"3": list(names)} if file == files[0] else {}, **names) for file in files}
    turns = in_turn(CORE, 3, CoveringTests(records=records, at_import=frozenset({(CORE, 3)})))
    assert [len(tests) for tests in turns] == [TESTS_AT_FIRST, 1, FILES_AT_FIRST, 1]


def test_the_time_of_tests_is_that_of_their_record() -> None:
    assert covering().seconds([f"{ROOM}::quick", f"{OWN}::y"]) == [0.5, 5.0]
    assert covering().seconds([ROOM]) == [2.0, 0.5]
