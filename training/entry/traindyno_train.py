"""Entry point of a training job: a run of the suite, or the preparation of its data."""

import os

from training.run_settings import read_preparation_settings


def main() -> None:
    preparation = read_preparation_settings(os.environ)
    if preparation is not None:
        from training.prepare_data import prepare_data  # noqa: PLC0415

        prepare_data(preparation)
    else:
        from training.main import main as train  # noqa: PLC0415  # imports torch, which tokenising does without

        train()


if __name__ == "__main__":
    main()
