"""Calls a function in each process of a group, whose processes are forked as those of
``run_forked``: each costs milliseconds, not seconds.
"""

import multiprocessing
import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.training.forked_jobs import run_forked

WORK = "work.pickle"


def run_group(work: Callable[..., Any], *arguments: Any, processes: int) -> list[Any]:
    """What ``work`` returned in each of several processes, by rank; the process group is the
    environment's, as under torchrun.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / WORK).write_bytes(pickle.dumps((work, arguments)))
        end = run_forked(
            folder,
            Path(__file__),
            processes=processes,
            environment={"GLOO_SOCKET_IFNAME": "lo"},
        )
        assert end.exit_code == 0, end.output[-6000:]
        return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(processes)]


def main() -> None:
    # Jobs fork the loader's workers, too, which need no imports.
    multiprocessing.set_start_method("fork", force=True)
    work, arguments = pickle.loads(Path(WORK).read_bytes())
    # pickle sends values: multiprocessing would pass tensors by handles of this process, which
    # ends.
    Path(f"{os.environ['RANK']}.pickle").write_bytes(pickle.dumps(work(*arguments)))


if __name__ == "__main__":
    main()
