"""Starts Traindyno's programs by forking, for ``forked_programs``, because their imports take most of their time.

A request is a line. It names a program to start, and the answer is its process ID; or it is the ID of an ended process,
and the answer is its exit status.
"""

import gc
import json
import os
import runpy
import signal
import sys
from importlib import import_module
from typing import Any

from localcloud.worker_fork_server import take_over

IMPORTED = ("traindyno.cli.main", "localcloud.sagemaker_service.__main__")


def main() -> None:
    for name in IMPORTED:
        import_module(name)
    gc.freeze()  # The collector leaves imported objects alone, so that the programs share their memory.
    for line in sys.stdin:
        request = json.loads(line)
        if "ended" in request:
            _, status = os.waitpid(request["ended"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if not answer:
                run(request)
                return
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def run(request: dict[str, Any]) -> None:
    """Runs the program in this process, and ends as the program does."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    files = [
        os.open(os.devnull, os.O_RDONLY),
        *(os.open(request[name], os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644) for name in ("output", "errors")),
    ]
    take_over(files, request["folder"], request["environment"])
    sys.argv = [request["module"], *request["arguments"]]
    # Each program is imported already under another name, so that only its last lines run again.
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
