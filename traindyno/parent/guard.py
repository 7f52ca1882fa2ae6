"""A process above the parent: it continues a stopped parent; if the parent is killed, it ends all that came from it."""

import os
import signal
import sys
import traceback
from typing import Callable

from traindyno.parent.process_tree import adopt_orphans, end_with_parent, kill_all


def under_guard(work: Callable[[], int]) -> int:
    """The exit code of ``work``, which runs in a child of this process. If this process is killed, the child gets
    SIGTERM.
    """
    adopt_orphans()
    guard = os.getpid()
    child = os.fork()
    if not child:
        end_with_parent(signal.SIGTERM)
        if os.getppid() != guard:
            os._exit(1)
        _work(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: os.kill(child, number))
    _, status = os.waitpid(child, os.WUNTRACED)
    while os.WIFSTOPPED(status):  # a run can send its parent SIGSTOP, and a stopped parent holds the machine
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, os.WUNTRACED)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    kill_all()
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _work(work: Callable[[], int]) -> None:
    code = 1
    try:
        code = work()
    except BaseException:  # noqa: BLE001 -- the process ends here, with its text, whatever it was
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue
        os._exit(code)
