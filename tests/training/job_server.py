"""Forks the jobs of ``forked_jobs`` as a shared job forks its runs.

Arguments: a pipe, and a module to import too.
"""

import atexit
import os
import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from training.entry import traindyno_ranks

IMPORTED = (
    "training.main",
    "training.prepare_data",
    "tests.training.checkpointed",
    "torch._dynamo",
    "transformers.trainer",
    *(f"training.strategies.{name}" for name in ("ddp", "zero1", "mesh", "whole_model")),
    *(
        f"transformers.models.{name}.modeling_{name}"
        for name in ("gpt2", "gptj", "bert", "albert", "llama")
    ),
)


def run(script: str, folder: str, *arguments: str) -> NoReturn:
    """This process runs the script and ends as the script does, without the seconds that freeing
    the imports takes.
    """
    os.chdir(folder)
    # The step log of this process is the one that its environment names, not the one from before
    # forking.
    sys.modules.pop("traindyno.callbacks", None)
    sys.argv = [script, *arguments]
    sys.path[:0] = [str(Path(script).parent), *os.environ["PYTHONPATH"].split(os.pathsep)]
    status = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 -- the script's own hook names it, as at any program's end
        sys.excepthook(*sys.exc_info())
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    for name in (*IMPORTED, sys.argv[2]):
        import_module(name)
    traindyno_ranks.main(int(sys.argv[1]))
    run(*sys.argv)
