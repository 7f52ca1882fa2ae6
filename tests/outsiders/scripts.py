"""Training scripts as people write them, without a framework, and what their step logs have to
say.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

IMPORT = "from traindyno.callbacks import step_log\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCase:
    """A script, and the step log that it leaves.

    ``samples`` are of each logged step. ``outcome`` and ``message`` are of the log's error line,
    None without one.

    ``said`` is a part of the script's output. ``is_ended``: whether the log has its last line.
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


LOOPS = {
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
    )
}
PROCESSES = {
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
    "only the first of two ranks": ScriptCase(
        source="""
step_log.independent()
with step_log.step(samples=1):
    pass
""",
        samples=[1],
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
        message="samples=2 is len(batch), the number of tensors in batch, and each of them holds "
        "16 rows; expected step_log.step(batch=batch)",
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
