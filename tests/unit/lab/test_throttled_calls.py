"""Every call of every function of the state machines, throttled: the function's task fails, its
repetition ends as if nothing had been throttled. Nothing is lost in silence, nothing is started or
paid twice.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lambdas.check_quotas import handler as check_quotas
from lambdas.finish_run import handler as finish_run
from lambdas.judge_suite import handler as judge_suite
from lambdas.plan_round import handler as plan_round
from lambdas.plan_suite import handler as plan_suite
from lambdas.reconcile_runs import handler as reconcile_runs
from lambdas.record_run import handler as record_run
from lambdas.stop_runs import handler as stop_runs
from lambdas.submit_run import handler as submit_run
from tests.permissions.reach import REPO_ROOT
from tests.unit.lab.test_prepare_data import lab_with_preparation, leave_tokens
from tests.unit.lab_in_memory import (
    EXECUTION,
    NOW,
    PRICE,
    MemoryExecutions,
    Unhurried,
    make_lab,
    set_environment,
)
from tests.unit.planned_lab import FixedQuotas, MemoryBuckets, empty_lab
from tests.unit.serving_in_memory import MemoryServing
from tests.unit.step_log_samples import log_lines
from tests.unit.suites import unprepared_document
from tests.unit.throttled_calls import Notices, Throttle, standing_clock
from traindyno.aws import clients
from traindyno.core.errors import Throttled
from traindyno.core.jobs.job import owner_document
from traindyno.core.s3_keys import step_log_prefix

HANDLERS: tuple[ModuleType, ...] = (
    check_quotas,
    finish_run,
    judge_suite,
    plan_round,
    plan_suite,
    reconcile_runs,
    record_run,
    stop_runs,
    submit_run,
)
LATER = NOW + 2000
MOST_TRIES = 3
SHORTAGE = (
    "CapacityError: Unable to provision requested ML compute capacity. Please retry using a "
    "different type."
)
# CloudFormation calls them.
OTHERS = {"build_image", "guard_lab"}
UNTIL_TOLD = float("inf")


@dataclass
class Story:
    """The functions of a lab in the order in which they are called, each again until it is not
    throttled, as the state machine, the events' retries and the sweep call them.
    """

    services: Any
    throttle: Throttle
    set_clock: Callable[[float], None]
    told: list[str] = field(default_factory=list)
    tokens: int = 0
    called: set[ModuleType] = field(default_factory=set)

    def call(self, handler: ModuleType, event: Any) -> Any:
        self.called.add(handler)
        for _ in range(MOST_TRIES):
            try:
                return handler.handle(event, Unhurried())
            except Throttled as error:
                self.told.append(str(error))
                self.throttle.lift()
        raise AssertionError(f"{handler.__name__} is throttled although nothing is")

    def call_waiting(
        self, handler: ModuleType, event: Any, has_begun: Callable[[str], bool]
    ) -> None:
        """The task gets a new token each time.

        Unless the function answers it, what the task waits for has begun.
        """
        answers = self.services.answers
        for _ in range(MOST_TRIES):
            self.tokens += 1
            token = f"token-{self.tokens}"
            self.call(handler, {**event, "token": token})
            answer = {given: name for given, name, _ in answers.given}.get(token)
            assert answer or has_begun(token), f"{handler.__name__}: the task waits for nothing"
            if answer != Throttled.__name__:
                return
            self.told.append(answer)
            self.throttle.lift()
            answers.given = [
                given_answer
                for given_answer in answers.given
                if given_answer[1] != Throttled.__name__
            ]
        raise AssertionError(f"{handler.__name__} is throttled although nothing is")

    def submit(self, owner: Any) -> None:
        lab = self.services
        self.call_waiting(
            submit_run,
            {"item": owner},
            lambda token: any(
                row.token == token and name in lab.jobs.jobs
                for name, row in lab.attempt_rows.items()
            ),
        )

    def sweep(self) -> None:
        self.throttle.lift()
        self.set_clock(LATER)
        self.call(reconcile_runs, {})

    def end(self, status: str, **changes: Any) -> None:
        """The newest job ends, and its event arrives."""
        name = list(self.services.jobs.jobs)[-1]
        self.services.jobs.end(name, status, **changes)
        self.call(finish_run, {"detail": {"TrainingJobName": name}})

    def left(self) -> Any:
        """What the story leaves behind, without tokens: they differ from try to try."""
        table = {
            key: {name: value for name, value in item.items() if name != "token"}
            for key, item in self.services.table.items.items()
        }
        answers = [(name, text) for _, name, text in self.services.answers.given]
        return table, self.services.objects.contents, answers, self.services.notices.mails


@cache
def run_event() -> Any:
    return owner_document(make_lab()[1][0])


def tell_run(story: Story) -> None:
    """A run that finds no capacity, then completes."""
    run = run_event()
    story.submit(run)
    story.end("Failed", reason=SHORTAGE, billable_seconds=0)
    story.submit(run)
    write_log(story, run["run"]["run_id"])
    story.end("Completed")
    story.call(record_run, {**run, "end": {"job_name": list(story.services.jobs.jobs)[-1]}})
    story.sweep()
    assert len(story.services.jobs.requests) >= len(story.services.jobs.jobs) == 2


def write_log(story: Story, run_id: str) -> None:
    name = list(story.services.jobs.jobs)[-1]
    key = f"{step_log_prefix(EXECUTION, run_id, name)}rank-00000.1790000000000.jsonl"
    story.services.objects.contents[key] = "".join(log_lines(step_seconds=[0.5] * 40)).encode()


def tell_refusal(story: Story) -> None:
    """A run for which the cap has no room, and one that no event finishes."""
    story.services.expose(PRICE.usd_per_hour * 1000)
    story.submit(run_event())
    story.services.expose(PRICE.usd_per_hour * 0)
    story.submit(run_event())
    story.services.jobs.end(list(story.services.jobs.jobs)[-1], "Completed")
    story.sweep()


def tell_stop(story: Story) -> None:
    story.submit(run_event())
    event = {"detail": {"name": EXECUTION, "status": "ABORTED"}}
    story.call(stop_runs, event)
    story.services.answers.gone = {f"token-{story.tokens}"}  # no task waits any more
    story.end("Stopped")
    story.sweep()


def tell_suite(story: Story) -> None:
    """From the document to the verdict."""
    event = {
        "execution_id": EXECUTION,
        "suite": unprepared_document(measurement={"jobs": "separate"}),
    }
    planned = story.call(plan_suite, event)
    planned = story.call(check_quotas, planned)
    round_ = story.call(plan_round, planned)
    (lane,) = round_["lanes"]
    for item in json.loads(story.services.objects.contents[lane["packs"][0]["items_key"]])[:1]:
        story.submit({"run": item["run"]})
        write_log(story, item["run"]["run_id"])
        story.end("Completed")
        story.call(record_run, {"run": item["run"], "end": {}})
    story.call(judge_suite, {"execution_id": EXECUTION})
    story.sweep()


def tell_preparation(story: Story) -> None:
    _, preparation = lab_with_preparation()
    story.submit(owner_document(preparation))
    with story.throttle.unseen():
        leave_tokens(story.services, list(story.services.jobs.jobs)[-1])
    story.end("Completed")
    story.sweep()


STORIES: dict[str, tuple[Callable[[], Any], Callable[[Story], None]]] = {
    "run": (lambda: make_lab()[0], tell_run),
    "preparation": (lambda: lab_with_preparation()[0], tell_preparation),
    "refusal": (lambda: make_lab()[0], tell_refusal),
    "stop": (lambda: make_lab()[0], tell_stop),
    "suite": (empty_lab, tell_suite),
}


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Throttle], Story]:
    return partial(tell_story, monkeypatch)


def tell_story(patch: pytest.MonkeyPatch, name: str, throttle: Throttle) -> Story:
    make, told = STORIES[name]
    services = make()
    services.notices = Notices()
    set_environment(patch, SECONDS_BETWEEN_STARTS="0")
    connect_to(patch, services)
    throttle.wrap(services)
    story = Story(services, throttle, partial(set_clock, patch))
    story.set_clock(NOW)
    told(story)
    return story


def set_clock(patch: pytest.MonkeyPatch, now: float) -> None:
    for handler in HANDLERS:
        patch.setattr(handler, "time", standing_clock(now), raising=False)


def connect_to(patch: pytest.MonkeyPatch, services: Any) -> None:
    for handler in HANDLERS:
        patch.setattr(handler, "connect", lambda _: services, raising=False)
        patch.setattr(handler, "ResultsBucket", lambda *_: services.objects, raising=False)
        patch.setattr(handler, "Executions", lambda *_: running_execution(), raising=False)
    patch.setattr(check_quotas, "Quotas", lambda *_, **__: FixedQuotas(4))
    product = {
        "product": {"attributes": {"usagetype": "USE1-Train:ml.g5.xlarge"}},
        "terms": {
            "OnDemand": {
                "a": {"priceDimensions": {"b": {"unit": "Hrs", "pricePerUnit": {"USD": "1.20"}}}}
            }
        },
    }
    pages = {"PriceList": [json.dumps(product)]}

    class Pricing:
        def get_paginator(self, _: str) -> Any:
            return SimpleNamespace(paginate=lambda **_: iter([pages]))

    for name in ("stepfunctions", "service_quotas", "sagemaker_with_more_retries"):
        patch.setattr(clients, name, lambda: None)
    patch.setattr(clients, "s3", MemoryBuckets)
    patch.setattr(clients, "pricing", Pricing)
    patch.setattr(clients, "sns", lambda: services.notices)
    patch.setattr(clients, "events", lambda: services.notices)
    patch.setattr(reconcile_runs, "open_serving", lambda _: MemoryServing().serving)


def running_execution() -> MemoryExecutions:
    executions = MemoryExecutions()
    executions.start(EXECUTION, {})
    return executions


def test_the_stories_call_every_function_but_those_answering_cloudformation(
    tell: Callable[[str, Throttle], Story],
) -> None:
    called = {handler for name in STORIES for handler in tell(name, Throttle()).called}
    folders = {path.parent.name for path in (REPO_ROOT / "lambdas").glob("*/handler.py")}
    assert {handler.__name__.split(".")[1] for handler in called} == folders - OTHERS


# A call that is throttled once leaves the function able to answer its task itself.
CASES = [
    *((name, UNTIL_TOLD) for name in sorted(STORIES)),
    *((name, 1) for name in ("refusal", "run", "stop")),
]


@pytest.mark.parametrize(("name", "count"), CASES)
def test_a_throttled_call_is_told_and_repeated_and_changes_nothing(
    tell: Callable[[str, Throttle], Story], name: str, count: float
) -> None:
    smooth = tell(name, Throttle())
    calls = smooth.throttle.made
    assert len(calls) >= 10
    assert smooth.told == []
    for begin, call in enumerate(calls):
        story = tell(name, Throttle(begin, count))
        assert story.told or count != UNTIL_TOLD, f"call {begin}, {call}: nothing was told"
        assert story.left() == smooth.left(), f"call {begin}, {call}"
