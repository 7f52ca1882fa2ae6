"""The program of the runs in tests of the race: it logs steps with the times that its arguments
say, and may wait.
"""

import json
import os
import sys
import time
from pathlib import Path

from traindyno.core.step_log.line import (
    CHECKSUMS,
    FIRST_BATCHES,
    end_line,
    environment_line,
    phase_line,
    step_line,
)

GIVEN = {
    **{"samples": 8, "steps": 20, "late": 0.0, "waits": 0.0, "lingers": 0.0, "exits": 0},
    "differ": 0,
}


def race(given: dict[str, float]) -> int:
    """Its exit code.

    Seconds: ``late`` before its steps, ``waits`` after them, ``lingers`` after its last line.

    With ``processes`` it writes the logs of so many; the first batches of each are the same, or
    ``differ``.
    """
    time.sleep(given["late"])
    began = time.time()
    rank = int(os.environ.get("RANK", "0"))
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    steps = [step(number, began, given) for number in range(int(given["steps"]))]
    ranks = range(int(given["processes"])) if "processes" in given else [rank]
    for process in ranks:
        about = environment_line(
            began, process, max(world_size, len(ranks)), os.environ["SM_CURRENT_HOST"], {}
        )
        sums = [7, 8, 9 + process * int(given["differ"])]
        first = phase_line(FIRST_BATCHES, began, began, {CHECKSUMS: sums})
        write(process, began, [about, *([first] if "processes" in given else []), *steps])
    time.sleep(60.0 if os.environ["TRAINDYNO_RUN_ID"] == "warm-up" else given["waits"])
    write(rank, began, [end_line(time.time(), int(given["steps"]))])
    time.sleep(given["lingers"])
    return int(given["exits"])


def step(number: int, began: float, given: dict[str, float]) -> dict[str, object]:
    """The spread of the steps is not 0."""
    seconds = given["seconds"]
    begin = began + number * seconds
    end = began + (number + 1 + 0.01 * (number % 2)) * seconds
    return step_line(
        step=number + 1,
        begin=begin,
        end=end,
        wait_seconds=0.0,
        samples=int(given["samples"]),
        loss=1.0,
    )


def write(rank: int, began: float, lines: list[dict[str, object]]) -> None:
    folder = Path(os.environ["TRAINDYNO_STEP_LOG_DIRECTORY"], os.environ["TRAINING_JOB_NAME"])
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"rank-{rank:05d}.{int(began * 1000)}.jsonl").open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    first = told.pop("first", {})
    sys.exit(
        race({**GIVEN, **told, **(first if os.environ["TRAINING_JOB_NAME"] == "job-a1" else {})})
    )
