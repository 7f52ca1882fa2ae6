"""Entry point of a training job: a run of the suite, or the preparation of its data."""

import os

from training.run_settings import is_preparation, read_run_settings


def main() -> None:
    run = read_run_settings(os.environ)
    if is_preparation(run):
        from training.prepare_data import prepare_data  # noqa: PLC0415

        prepare_data(run)
    else:
        from training.main import main as train  # noqa: PLC0415  # imports torch, which tokenising does without

        train()


if __name__ == "__main__":
    main()
