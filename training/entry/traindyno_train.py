"""Entry point of a training job: a run of the suite, or the preparation of its data."""

import gc
import os
import sys

from traindyno.core.run.record import PreparationRecord
from training.process.run_settings import read_preparation
from training.run.ending import FAILURE_EXIT_CODE, exit_now


def main() -> None:
    # Collections find nothing among imported modules and take a fifth of the time of their import.
    gc.disable()
    preparation = read_preparation(os.environ)
    if preparation is not None:
        prepare(preparation)
    else:
        from training.main import main as train  # noqa: PLC0415  # imports torch, which tokenising does without

        collect_from_here()
        train()


def prepare(asked: PreparationRecord) -> None:
    from training.prepare_data import prepare_data  # noqa: PLC0415

    collect_from_here()
    try:
        prepare_data(asked)
    except Exception:  # noqa: BLE001 -- the step log's hook names it, as at any program's end
        sys.excepthook(*sys.exc_info())
        exit_now(FAILURE_EXIT_CODE)
    exit_now(0)


def collect_from_here() -> None:
    """Collections look only at objects that are made after this call."""
    gc.freeze()
    gc.enable()


if __name__ == "__main__":
    main()
