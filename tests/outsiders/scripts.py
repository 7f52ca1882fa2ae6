"""Training scripts as people write them, without a framework, and what their step logs have to say."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCase:
    """``samples`` of each logged step. ``outcome`` and ``message``: of the log's error line, None where there is none.

    ``said``: what the script's output has to hold. ``is_ended``: whether the log has its last line.
    """

    source: str
    samples: Sequence[int]
    outcome: str | None = None
    message: str = ""
    said: str = ""
    exit_code: int = 0
    is_ended: bool = True
    phases: Sequence[str] = ()
    environment: dict[str, str] = field(default_factory=dict)


IMPORT = "from traindyno.callbacks import step_log\n"
LOOPS = {
    "a plain loop": ScriptCase(
        source="""
for batch in ([1, 2], [3, 4], [5]):
    with step_log.step(samples=len(batch)) as step:
        step.loss = 1 / sum(batch)
""",
        samples=[2, 2, 1],
    ),
    "a break inside the step": ScriptCase(
        source="""
while True:
    with step_log.step(samples=4):
        break
""",
        samples=[4],
    ),
    "an exception that the script handles": ScriptCase(
        source="""
for number in range(3):
    try:
        with step_log.step(samples=4):
            if number == 1:
                raise ValueError("skip this batch")
    except ValueError:
        continue
""",
        samples=[4, 4],
    ),
    "a generator that yields inside the step": ScriptCase(
        source="""
def steps():
    for _ in range(3):
        with step_log.step(samples=2) as step:
            yield step

for step in steps():
    step.loss = 0.5
""",
        samples=[2, 2, 2],
    ),
    "an asynchronous loop": ScriptCase(
        source="""
import asyncio

async def train():
    for _ in range(3):
        with step_log.step(samples=2):
            await asyncio.sleep(0)

asyncio.run(train())
""",
        samples=[2, 2, 2],
    ),
    "samples counted while the step runs": ScriptCase(
        source="""
with step_log.step(samples=1) as step:
    step.samples = 7
""",
        samples=[7],
    ),
    "batches whose rows the step counts": ScriptCase(
        source="""
import numpy as np
rows = np.zeros((3, 8))
for batch in (rows, [rows, rows[:, :1]], (rows, {"label": rows[:, 0]}), {"x": rows, "temperature": np.float64(2)}):
    with step_log.step(batch=batch):
        pass
""",
        samples=[3, 3, 3, 3],
    ),
    "the rows of a batch that is a list of tensors": ScriptCase(
        source="""
import numpy as np
for _ in range(3):
    batch = [np.zeros((16, 8)), np.zeros((16, 1))]
    with step_log.step(samples=len(batch[0])):
        pass
""",
        samples=[16, 16, 16],
    ),
    "counts and losses of NumPy": ScriptCase(
        source="""
import numpy as np
with step_log.step(samples=np.int64(3), tokens=np.int32(9), learning_rate=float(np.float32(0.1))) as step:
    step.loss = np.float32(0.25)
""",
        samples=[3],
    ),
    "a search for a batch that fits into memory": ScriptCase(
        source="""
batch = 32
while batch:
    try:
        for number in range(5):
            with step_log.step(samples=batch):
                if batch > 8 and number == 2:
                    raise MemoryError
        break
    except MemoryError:
        batch //= 2
""",
        samples=[8] * 5,
        phases=["batch_search"] * 2,
    ),
    "a large batch that is left out for lack of memory": ScriptCase(
        source="""
for batch in (4, 16, 64, 8, 16):
    try:
        with step_log.step(samples=batch):
            if batch == 64:
                raise MemoryError
    except MemoryError:
        continue
""",
        samples=[4, 16, 8, 16],
    ),
    "another working directory": ScriptCase(
        source="""
import os, tempfile
os.chdir(tempfile.mkdtemp())
with step_log.step(samples=1):
    pass
""",
        samples=[1],
    ),
    "standard output closed": ScriptCase(
        source="""
import sys
with step_log.step(samples=1):
    sys.stdout.close()
sys.stdout = None
""",
        samples=[1],
    ),
}
PHASES = {
    "phases of its own": ScriptCase(
        source="""
with step_log.phase("load", {"rows": 3}):
    pass
with step_log.step(samples=1):
    pass
with step_log.phase("save"):
    pass
""",
        samples=[1],
        phases=["load", "save"],
    ),
    "a phase that fails and is tried again": ScriptCase(
        source="""
for attempt in (1, 2):
    try:
        with step_log.phase("save"):
            if attempt == 1:
                raise OSError("busy")
    except OSError:
        pass
with step_log.step(samples=1):
    pass
""",
        samples=[1],
        phases=["save"],
    ),
    "a phase in a second thread while steps run": ScriptCase(
        source="""
import threading

def save():
    with step_log.phase("save"):
        pass

with step_log.step(samples=1):
    pass
thread = threading.Thread(target=save)
thread.start()
thread.join()
with step_log.step(samples=1):
    pass
""",
        samples=[1, 1],
        phases=["save"],
    ),
}
OVERLAPS = {
    "a step inside a step": ScriptCase(
        source="""
with step_log.step(samples=4):
    with step_log.step(samples=4):
        pass
""",
        samples=[],
        outcome="user_code_error",
        message="script.py:4 while the step that began at",
        exit_code=1,
        is_ended=False,
    ),
    "a step inside a step, in a function": ScriptCase(
        source="""
def train_on(batch):
    with step_log.step(samples=len(batch)):
        pass

for batch in ([1], [2]):
    with step_log.step(samples=1):
        train_on(batch)
""",
        samples=[],
        outcome="user_code_error",
        message="expected one step at a time in a process",
        exit_code=1,
        is_ended=False,
    ),
    "two threads that log at once": ScriptCase(
        source="""
import threading

def train():
    with step_log.step(samples=4):
        pass

with step_log.step(samples=4):
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
""",
        samples=[4],
        said="RuntimeError: a step begins at",
    ),
    "two threads that log in turn": ScriptCase(
        source="""
import threading

def train():
    with step_log.step(samples=4):
        pass

for _ in range(2):
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
""",
        samples=[4, 4],
    ),
}
PROCESSES = {
    "a forked child that exits": ScriptCase(
        source="""
import os, sys
with step_log.step(samples=1):
    pass
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
with step_log.step(samples=1):
    pass
""",
        samples=[1, 1],
    ),
    "a forked child that fails": ScriptCase(
        source="""
import os
with step_log.step(samples=1):
    pass
child = os.fork()
if child == 0:
    raise ValueError("only the child")
os.waitpid(child, 0)
""",
        samples=[1],
        said="ValueError: only the child",
    ),
    "a pool of forked workers": ScriptCase(
        source="""
import multiprocessing

def load(number):
    return [number] * 2

with multiprocessing.get_context("fork").Pool(2) as pool:
    for batch in pool.imap(load, range(4)):
        with step_log.step(samples=len(batch)):
            pass
""",
        samples=[2, 2, 2, 2],
    ),
    "an exit in the middle": ScriptCase(
        source="""
import sys
with step_log.step(samples=1):
    pass
sys.exit(3)
""",
        samples=[1],
        exit_code=3,
    ),
    "kill -9": ScriptCase(
        source="""
import os, signal
with step_log.step(samples=1):
    pass
step_log.flush()
os.kill(os.getpid(), signal.SIGKILL)
""",
        samples=[1],
        exit_code=-9,
        is_ended=False,
    ),
    "only the first of two ranks": ScriptCase(
        source="""
step_log.independent()
with step_log.step(samples=1):
    pass
""",
        samples=[1],
        environment={"RANK": "0", "WORLD_SIZE": "2"},
    ),
    "a process that found no other": ScriptCase(
        source="""
with step_log.step(samples=1):
    pass
""",
        samples=[],
        outcome="user_code_error",
        message="2 processes were started, but this one has no process group: each trains alone on all of the data, "
        "and their samples would be counted as those of one run; expected torch.distributed.init_process_group() "
        "before the first step; or step_log.independent()",
        exit_code=1,
        is_ended=False,
        environment={"RANK": "0", "WORLD_SIZE": "2"},
    ),
    "a rank without samples": ScriptCase(
        source="""
step_log.independent()
with step_log.step(samples=0):
    pass
""",
        samples=[0],
        environment={"RANK": "0", "WORLD_SIZE": "2"},
    ),
}
FAILURES = {
    "an exception": ScriptCase(
        source="""
with step_log.step(samples=1):
    pass
raise KeyError("labels")
""",
        samples=[1],
        outcome="user_code_error",
        message="rank 0: KeyError: 'labels' (script.py, line 5)",
        exit_code=1,
        is_ended=False,
    ),
    "no memory": ScriptCase(
        source="""
with step_log.step(samples=1):
    raise MemoryError
""",
        samples=[],
        outcome="out_of_memory",
        message="rank 0: MemoryError: no message",
        exit_code=1,
        is_ended=False,
    ),
    "the number of a batch's tensors as its samples": ScriptCase(
        source="""
import numpy as np

def train(loader):
    for batch in loader:
        with step_log.step(samples=len(batch)):
            pass

train([[np.zeros((16, 8)), np.zeros((16, 1))]] * 3)
""",
        samples=[],
        outcome="user_code_error",
        message="samples=2 is len(batch), the number of tensors in batch, and each of them holds 16 rows; expected "
        "step_log.step(batch=batch)",
        exit_code=1,
        is_ended=False,
    ),
    "neither a batch nor samples": ScriptCase(
        source="""
with step_log.step():
    pass
""",
        samples=[],
        outcome="user_code_error",
        message="a step needs batch=... or samples=..., and not both",
        exit_code=1,
        is_ended=False,
    ),
    "no samples": ScriptCase(
        source="""
with step_log.step(samples=0):
    pass
""",
        samples=[],
        outcome="user_code_error",
        message="a step was logged with samples=0; expected the number of samples",
        exit_code=1,
        is_ended=False,
    ),
    "fewer than no samples": ScriptCase(
        source="""
with step_log.step(samples=-4):
    pass
""",
        samples=[],
        outcome="user_code_error",
        message="a step was logged with samples=-4",
        exit_code=1,
        is_ended=False,
    ),
    "half a sample": ScriptCase(
        source="""
with step_log.step(samples=0.5):
    pass
""",
        samples=[],
        outcome="user_code_error",
        message="TypeError: 'float' object cannot be interpreted as an integer",
        exit_code=1,
        is_ended=False,
    ),
    "a loss that is no number": ScriptCase(
        source="""
for loss in (1.0, float("nan"), float("nan")):
    with step_log.step(samples=1) as step:
        step.loss = loss
""",
        samples=[1, 1, 1],
        outcome="loss_diverged",
        message="the loss of step 2 is nan",
    ),
    "an infinite loss": ScriptCase(
        source="""
with step_log.step(samples=1) as step:
    step.loss = float("inf")
""",
        samples=[1],
        outcome="loss_diverged",
        message="the loss of step 1 is inf",
    ),
    "an evaluation whose loss is no number": ScriptCase(
        source="""
with step_log.step(samples=1) as step:
    step.loss = 1.0
step_log.evaluation({"val_loss": float("nan"), "accuracy": 0.5})
""",
        samples=[1],
        outcome="loss_diverged",
        message="the evaluation's val_loss after step 1 is nan",
    ),
    "an interrupt": ScriptCase(
        source="""
with step_log.step(samples=1):
    pass
raise KeyboardInterrupt
""",
        samples=[1],
        outcome="stopped_by_user",
        message="rank 0: KeyboardInterrupt: no message",
        exit_code=-2,
        is_ended=False,
    ),
}
CASES = {**LOOPS, **PHASES, **OVERLAPS, **PROCESSES, **FAILURES}
