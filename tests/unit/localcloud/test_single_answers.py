"""A task takes one answer, also while it has not read that one yet."""

import threading
from collections.abc import Mapping
from typing import Any

from localcloud.single_answers import SingleAnswers


def test_a_task_takes_one_answer_and_others_are_left_to_ministack() -> None:
    tasks: dict[str, dict[str, Any]] = {token: {"event": threading.Event()} for token in ("first", "second")}
    taken = []

    def take(data: Mapping[str, Any]) -> str:
        taken.append(data["taskToken"])
        if data["taskToken"] in tasks:
            tasks[data["taskToken"]]["event"].set()
        return "taken"

    answers = SingleAnswers(tasks, lambda: "refused")
    succeed, fail = answers.once(take), answers.once(take)
    assert [fail({"taskToken": "first"}), succeed({"taskToken": "first"}), fail({"taskToken": "first"})] == [
        "taken",
        "refused",
        "refused",
    ]
    assert succeed({"taskToken": "second"}) == "taken"
    # an unknown token gets MiniStack's own error
    succeed({"taskToken": "unknown"})
    assert taken == ["first", "second", "unknown"]
