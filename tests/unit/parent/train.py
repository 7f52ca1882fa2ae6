"""The program of the runs in tests of the parent: it does what its arguments say, in order."""

import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path

LOG = Path(os.environ["TRAINDYNO_STEP_LOG_DIRECTORY"], os.environ["TRAINING_JOB_NAME"])
HERE = Path(os.environ["TMPDIR"])


def log(text: str) -> None:
    LOG.mkdir(parents=True, exist_ok=True)
    with (LOG / f"rank-{os.environ.get('RANK', '0')}.jsonl").open("a") as file:
        file.write(text + "\n")


def do(what: str, value: str) -> None:
    state = os.environ.get("TRAINDYNO_CHECKPOINT_DIRECTORY")
    if what == "--exit":
        sys.exit(int(value))
    elif what == "--kill":
        os.kill(os.getpid(), int(value))
    elif what == "--print":
        sys.stdout.buffer.write(value.encode() + b"\xff\xfe Error\n")
        sys.stdout.flush()
    elif what == "--fail":
        Path(os.environ["SM_OUTPUT_DIR"], "failure").write_text(value)
        sys.exit(1)
    elif what == "--sleep":
        log("sleeps")
        time.sleep(float(value))
    elif what == "--deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif what == "--daemon":
        process = subprocess.Popen(["sleep", value], start_new_session=True, stdout=subprocess.DEVNULL)
        log(f"daemon {process.pid}")
    elif what == "--shared-memory":
        segment = shared_memory.SharedMemory(value, create=True, size=4096)
        resource_tracker.unregister(f"/{segment.name}", "shared_memory")
    elif what == "--checkpoint" and state:
        Path(state).mkdir(parents=True, exist_ok=True)
        Path(state, value).write_text("weights")
    elif what == "--environment":
        Path(value).write_text(json.dumps(dict(os.environ)))
    elif what == "--exit-on-host" and os.environ["SM_CURRENT_HOST"] == value:
        sys.exit(5)
    elif what == "--all-reduce":
        all_reduce(float(value))


def all_reduce(number: float) -> None:
    import torch
    from torch import distributed

    distributed.init_process_group("gloo")
    total = torch.tensor([number * (distributed.get_rank() + 1)])
    distributed.all_reduce(total)
    log(f"sum {total.item():g} of {distributed.get_world_size()}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    log("began")
    for name, given in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        do(name, given)
