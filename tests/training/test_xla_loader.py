"""What the compiler xla loads ahead, in the environment that has PyTorch/XLA."""

import os
import subprocess
from pathlib import Path

from tests.xla.xla_environment import make_environment

REPOSITORY = Path(__file__).parents[2]
PROGRAM = """
import threading
import torch
from training.compilers.xla import Xla

accelerator = Xla()

def steps(count, error=None):
    for number in range(count):
        batch = {"input_ids": torch.full((2, 3), number), "labels": torch.zeros(2).long()}
        yield [batch, batch], 4, 12
    if error is not None:
        raise error

loaded = list(accelerator.load_ahead(steps(5)))
assert [(samples, tokens) for _, samples, tokens in loaded] == [(4, 12)] * 5
held = [tensor for batches, *_ in loaded for batch in batches for tensor in batch.values()]
assert {tensor.device.type for tensor in held} == {"xla"}
assert [int(batches[1]["input_ids"][0, 0]) for batches, *_ in loaded] == [0, 1, 2, 3, 4]
# to_device of what is there already copies nothing
batch = loaded[0][0][0]
assert accelerator.to_device(batch)["labels"] is batch["labels"]

seen = 0
try:
    for _ in accelerator.load_ahead(steps(3, ValueError("row 3 is broken"))):
        seen += 1
except ValueError as error:
    assert (seen, str(error)) == (3, "row 3 is broken")
else:
    raise AssertionError("the data's error was taken for its end")

before = threading.active_count()
ahead = accelerator.load_ahead(steps(10_000))
next(ahead)
assert threading.active_count() > before
ahead.close()
assert threading.active_count() == before
print("loaded")
"""


def test_steps_are_loaded_ahead_and_errors_of_the_data_are_raised() -> None:
    python = make_environment(REPOSITORY / ".envs" / "xla")
    environment = {**os.environ, "PJRT_DEVICE": "CPU", "PYTHONPATH": str(REPOSITORY)}
    answer = subprocess.run(
        [python, "-c", PROGRAM], capture_output=True, text=True, check=False, env=environment
    )
    assert answer.stdout.endswith("loaded\n"), answer.stderr
