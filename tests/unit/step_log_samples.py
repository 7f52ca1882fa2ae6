"""Step logs made by the writer's own functions, for tests of what reads them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from traindyno.core.step_log import line

START = 1_700_000_000.0


def log_lines(
    *,
    rank: int = 0,
    world_size: int = 1,
    step_seconds: Sequence[float],
    wait_seconds: float = 0.0,
    samples: int = 8,
    tokens: int | None = None,
    loss: Callable[[int], float | None] = lambda step: 4.0 - step / 100,
    first_step: int = 0,
    start: float = START,
    before: Sequence[Mapping[str, Any]] = (),
    after: Sequence[Mapping[str, Any]] = (),
    is_ended: bool = True,
    facts: Mapping[str, Any] | None = None,
    end_reason: str | None = None,
    launch: str | None = None,
) -> list[str]:
    """One process's lines: environment, ``before``, the steps one after another, ``after``, end."""
    lines: list[Mapping[str, Any]] = [
        line.environment_line(
            start,
            rank,
            world_size,
            f"algo-{rank + 1}",
            dict(facts or {"torch": "2.13.0"}),
            launch=launch,
        ),
        *before,
    ]
    time = start
    for index, seconds in enumerate(step_seconds):
        lines.append(
            line.step_line(
                step=first_step + index,
                begin=time,
                end=time + seconds,
                wait_seconds=wait_seconds,
                samples=samples,
                tokens=tokens,
                loss=loss(index),
                peak_memory_bytes=1000 + index,
            )
        )
        time += seconds
    lines += after
    if is_ended:
        lines.append(line.end_line(time, len(step_seconds), end_reason))
    return [json.dumps(document) + "\n" for document in lines]


def file_name(rank: int = 0, *, job: str = "job-a1", start: float = START) -> str:
    return f"{job}/rank-{rank:05d}.{int(start * 1000)}.jsonl"
