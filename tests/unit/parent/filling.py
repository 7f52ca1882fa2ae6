"""The program of the runs in tests of the batch search: each sample of its batch takes 8 MiB of a
limited memory.

Arguments: ``--batch``; ``--room``: the largest batch for which the limit leaves memory;
``--slow-from``: the batch from which a step takes four times as long; ``--breaks-from``: the batch
from which it fails without need of memory; ``--retries-from``: the batch from which a device's
allocator tries again; ``--hangs-from``: the batch from which it does no step; ``--goes-on``: for so
many seconds after its steps, without one.
"""

import argparse
import os
import resource
import time
from pathlib import Path

from tests.unit.parent.racing import write
from traindyno.core.step_log.line import (
    ALLOCATOR_RETRIES,
    RETRIES,
    end_line,
    environment_line,
    phase_line,
    step_line,
)

SAMPLE_BYTES = 2**23
STEPS = 10


def fill(batch: int, room: int) -> bytearray:
    """Raises MemoryError beyond the room."""
    (used,) = (
        line.split()[1]
        for line in Path("/proc/self/status").read_text().splitlines()
        if "VmData" in line
    )
    most = int(used) * 1024 + room * SAMPLE_BYTES + SAMPLE_BYTES // 2
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    return bytearray(batch * SAMPLE_BYTES)


def train(batch: int, step_seconds: float, held_bytes: int, retries: int) -> None:
    began = time.time()
    lines = [environment_line(began, 0, 1, os.environ["SM_CURRENT_HOST"], {})]
    for number in range(STEPS):
        begin = began + number * step_seconds
        lines.append(
            step_line(
                step=number + 1,
                begin=begin,
                end=begin + step_seconds,
                wait_seconds=0.0,
                samples=batch,
                peak_memory_bytes=held_bytes,
            )
        )
    if retries:
        lines.append(phase_line(ALLOCATOR_RETRIES, time.time(), time.time(), {RETRIES: retries}))
    lines.append(end_line(time.time(), STEPS))
    write(0, began, lines)


if __name__ == "__main__":
    given = argparse.ArgumentParser()
    for name in ("batch", "room", "slow-from", "breaks-from", "retries-from", "hangs-from"):
        given.add_argument("--" + name, type=int, default=10**9)
    given.add_argument("--goes-on", type=int, default=0)
    told = given.parse_args()
    kept = fill(told.batch, told.room)
    if told.batch >= told.breaks_from:
        raise SystemExit("the batch is odd")
    if told.batch >= told.hangs_from:
        time.sleep(600)
    train(
        told.batch,
        0.04 if told.batch >= told.slow_from else 0.01,
        len(kept),
        2 * (told.batch >= told.retries_from),
    )
    time.sleep(told.goes_on)
