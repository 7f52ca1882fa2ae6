"""What `local up` tells of the executions that ended with an earlier MiniStack."""

from dataclasses import replace

from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.lab.test_rebuild_books import told
from tests.unit.lab_in_memory import EXECUTION, NOW, MemoryExecutions, MemoryLab
from traindyno.cli.inputs.local_restart import settle_restart
from traindyno.core.s3_keys import suite_key


def settle(
    lab: MemoryLab, *, since: float, error: str = "States.ServiceRestart", is_known: bool = True
) -> tuple[bool, list[str]]:
    executions, deploying, texts = MemoryExecutions(), MemoryExecutions(), list[str]()
    for each, name in ((executions, EXECUTION), (deploying, "served-1")) if is_known else ():
        each.start(name, {})
        each.end(name, "FAILED", error=error)
    lab.answers.gone = {f"token-{number}" for number in range(10)} | {"its-task-has-ended"}
    (working,) = (name for name, job in lab.jobs.jobs.items() if job["TrainingJobStatus"] == "InProgress")
    lab.jobs.end(working, "Completed")
    target = replace(target_of(lab), executions=executions)
    return settle_restart(target, deploying, since=since, tell=texts.append), texts


def test_executions_that_the_restart_ended_are_named_with_how_to_start_them_again() -> None:
    lab = told().lab
    lab.table.items = {}
    is_settled, texts = settle(lab, since=NOW)
    assert is_settled
    # Five jobs of 300 s at 1.20 USD an hour, of which each is rounded up to a millionth.
    assert texts == [
        f"execution {EXECUTION}: was running and has ended; 5 of its attempts had lost their rows, which were written "
        "again from the jobs; it has spent $0.50; start it again with: traindyno run quick-look.yaml --local",
        "deployment served-1 was running and has ended; start it again with: traindyno deploy",
    ]


def test_an_execution_that_step_functions_has_forgotten_has_ended_too() -> None:
    lab = told().lab
    lab.table.items = {}
    is_settled, (text,) = settle(lab, since=NOW, is_known=False)
    assert is_settled
    assert text.startswith(f"execution {EXECUTION}: was running and has ended; 5 of its attempts had lost their rows")


def test_executions_that_ended_before_or_for_another_reason_are_not_named() -> None:
    assert settle(told().lab, since=NOW + 10_000) == (True, [])
    assert settle(told().lab, since=NOW, error="SuiteRefused") == (True, [])


def test_what_can_not_be_settled_is_told_and_left_to_the_next_up() -> None:
    lab = told().lab
    lab.objects.contents[suite_key(EXECUTION)] = b"{"
    lab.bucket._fixed.clear()
    is_settled, (text,) = settle(lab, since=NOW)
    assert not is_settled
    assert "suite.json is damaged" in text
    assert "try again with: traindyno local up" in text
