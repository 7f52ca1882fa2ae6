"""The program of the runs in tests of the race: it logs steps with the times that its arguments say, and may wait."""

import json
import os
import sys
import time
from pathlib import Path

from traindyno.core.step_log.line import end_line, environment_line, step_line

STEPS = 20
IS_WARM_UP = os.environ["TRAINDYNO_RUN_ID"] == "warm-up"


def main(*, seconds: float, samples: int = 8, steps: int = STEPS, waits: float = 0.0, slower: float = 1.0) -> None:
    """``waits`` seconds after its steps, before its last line. ``slower`` is the second rank, by this factor."""
    rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    seconds = seconds * (slower if rank else 1.0)
    began = time.time()
    lines = [environment_line(began, rank, world_size, os.environ["SM_CURRENT_HOST"], {})]
    lines += [
        step_line(
            step=step + 1,
            begin=began + step * seconds,
            # The spread of the steps is not 0.
            end=began + (step + 1 + 0.01 * (step % 2)) * seconds,
            wait_seconds=0.0,
            samples=samples,
            loss=1.0,
        )
        for step in range(steps)
    ]
    write(rank, began, lines)
    time.sleep(600.0 if IS_WARM_UP else waits)
    write(rank, began, [end_line(time.time(), steps)])


def write(rank: int, began: float, lines: list[dict[str, object]]) -> None:
    folder = Path(os.environ["TRAINDYNO_STEP_LOG_DIRECTORY"], os.environ["TRAINING_JOB_NAME"])
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"rank-{rank:05d}.{int(began * 1000)}.jsonl").open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    first = given.pop("first", {})
    main(**{**given, **(first if os.environ["TRAINING_JOB_NAME"] == "job-a1" else {})})
