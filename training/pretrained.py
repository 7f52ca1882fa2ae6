"""What transformers can't load, said as an error of the workload."""

from collections.abc import Iterator
from contextlib import contextmanager

from training.errors import WorkloadError


@contextmanager
def explained(what: str) -> Iterator[None]:
    """transformers raises OSError for what it does not find and ValueError for what it does not know."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise WorkloadError(
            f"{what} can't be loaded: {error}; expected a Hub id, an S3 prefix or a folder that transformers saved"
        ) from error
