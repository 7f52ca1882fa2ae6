"""The program of the runs in tests of the parent: it does what its arguments say, in order."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from traindyno.callbacks.process import launcher_started

LOG = Path(os.environ["TRAINDYNO_STEP_LOG_DIRECTORY"], os.environ["TRAINING_JOB_NAME"])


def log(text: str) -> None:
    LOG.mkdir(parents=True, exist_ok=True)
    with (LOG / f"rank-{os.environ.get('RANK', '0')}.jsonl").open("a") as file:
        file.write(text + "\n")


def stop(seconds: float) -> None:
    log("stop")
    time.sleep(seconds)
    sys.exit()


def do(what: str, value: str) -> None:
    state = os.environ.get("TRAINDYNO_CHECKPOINT_DIRECTORY")
    match what:
        case "--print":
            sys.stdout.buffer.write(value.encode() + b"\xff\xfe Error\n")
            sys.stdout.flush()
        case "--sleep":
            log("sleeps")
            time.sleep(float(value))
        case "--deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "--daemon":
            process = subprocess.Popen(
                ["sleep", value], start_new_session=True, stdout=subprocess.DEVNULL
            )
            log(f"daemon {process.pid}")
        case "--shared-memory":
            Path(value).write_bytes(b"x")
        case "--checkpoint" if state:
            Path(state).mkdir(parents=True, exist_ok=True)
            Path(state, value).write_text("weights")
        case "--use-device":
            Path(value).write_text("10\n9020\n")
        case "--launcher":
            log(f"launched {launcher_started()}")
        case "--leave":
            leave(value)
        case "--shared-job":
            log(os.environ["TRAINDYNO_SHARED_JOB"])
        case "--all-reduce":
            all_reduce(float(value))
        case _:
            end(what, value)


def end(what: str, value: str) -> None:
    match what:
        case "--count-stops":
            signal.signal(signal.SIGTERM, lambda *_: stop(float(value)))
        case "--exit":
            sys.exit(int(value))
        case "--strike" if value == "SIGTERM":
            os.kill(os.getppid(), signal.SIGTERM)
        case "--strike":
            parent = Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(parent.rpartition(")")[2].split()[1]), signal.SIGKILL)
        case "--forge-ends":
            forge_ends(value.split())
        case "--kill":
            os.kill(os.getpid(), int(value))
        case "--fail":
            Path(os.environ["SM_OUTPUT_DIR"], "failure").write_text(value)
            sys.exit(1)
        case "--exit-on-host" if os.environ["SM_CURRENT_HOST"] == value:
            sys.exit(5)


def forge_ends(run_ids: list[str]) -> None:
    """Each says that its run completed; one may be there."""
    for run_id in run_ids:
        path = LOG.parents[2] / run_id / "ended" / LOG.name / "algo-1.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        forged = {
            **{"version": 1, "run_id": run_id, "job_name": LOG.name, "host": "algo-1"},
            **{"hosts": ["algo-1"], "reason": "exited", "exit_code": 0, "files": {}},
        }
        path.write_text(json.dumps(forged))


def leave(name: str) -> None:
    """A file in each folder that is the run's own, after a line on what is there."""
    for variable in ("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR"):
        folder = Path(os.environ[variable])
        folder.mkdir(parents=True, exist_ok=True)
        log(f"{variable} {len(list(folder.iterdir()))}")
    for variable in ("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR"):
        Path(os.environ[variable], name).write_text(name)


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
