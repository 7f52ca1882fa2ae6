"""How many samples a batch holds: the rows of its tensors, or an error where the batch does not say it."""

import itertools
from typing import Any, Iterator, Mapping, Optional, Tuple

MOST_TENSORS_OF_A_SAMPLE = 4
DIMENSIONS_OF_AN_IMAGE = 3


def count_rows(batch: Any, instead: str = "samples=...") -> int:
    """Returns the first dimension of the tensors in nested lists, tuples and mappings.

    Raises ValueError if there is no tensor, if their first dimensions differ, or if a list may hold one tensor for each
    sample. ``instead`` is what the script can write then.
    """
    rows = sorted({int(tensor.shape[0]) for tensor in _tensors(batch)})
    if not rows:
        raise ValueError(
            "the batch, a {}, holds no tensor with a first dimension; expected one, or {}".format(
                type(batch).__name__, instead
            )
        )
    if len(rows) > 1:
        raise ValueError(
            "the first dimensions of the batch's tensors differ: {}; expected the same for all, the number of samples, "
            "or {}".format(", ".join(map(str, rows)), instead)
        )
    samples = _list_of_samples(batch)
    if samples is not None:
        raise ValueError(
            "the batch holds a list of {} parts of one kind, the first tensor of shape {}: it may hold {} or {} "
            "samples; expected {}".format(len(samples), tuple(samples[0].shape), len(samples), rows[0], instead)
        )
    return rows[0]


def refuse_length_of_batch(samples: int, variables: Mapping[str, Any]) -> None:
    """Raises ValueError if ``samples`` is the length of a list, tuple or mapping of tensors that hold other numbers of
    rows. ``variables`` are those of the script where the step begins.
    """
    for name, value in variables.items():
        # A script's variables may be whole data sets: only those of this length are looked into.
        is_of_that_length = (isinstance(value, (list, tuple)) or _is_mapping(value)) and len(value) == samples
        rows = _rows_of_fields(value) if is_of_that_length else None
        if rows is not None and rows != samples:
            raise ValueError(
                "samples={0} is len({1}), the number of tensors in {1}, and each of them holds {2} rows; expected "
                "step_log.step(batch={1}), which counts the rows, or samples={2}".format(samples, name, rows)
            )


def _tensors(batch: Any) -> Iterator[Any]:
    """The tensors and arrays with at least one dimension, at any depth."""
    if hasattr(batch, "shape"):
        if len(batch.shape):
            yield batch
        return
    for part in _parts(batch):
        yield from _tensors(part)


def _parts(batch: Any) -> Tuple[Any, ...]:
    if _is_mapping(batch):
        return tuple(batch.values())
    return tuple(batch) if isinstance(batch, (list, tuple)) else ()


def _is_mapping(value: Any) -> bool:
    """No class and no data frame, which have the methods of a mapping too."""
    return isinstance(value, Mapping)


def _list_of_samples(batch: Any) -> Optional[Tuple[Any, ...]]:
    """The first tensor of each part of a list or tuple, at any depth, whose parts may be one for each sample, as for
    images of several sizes and for a batch that is not collated.

    Tensors of one type and number of dimensions are such a list if they are many, or have the dimensions of an image.
    """
    parts = _parts(batch)
    tensors = tuple(tensor for part in parts for tensor in itertools.islice(_tensors(part), 1))
    if isinstance(batch, (list, tuple)) and len(tensors) == len(parts) > 1:
        dimensions = {len(tensor.shape) for tensor in tensors}
        is_one_kind = len(dimensions) == 1 and len({str(tensor.dtype) for tensor in tensors}) == 1
        if is_one_kind and (len(parts) > MOST_TENSORS_OF_A_SAMPLE or DIMENSIONS_OF_AN_IMAGE in dimensions):
            return tensors
    return next((found for found in map(_list_of_samples, parts) if found is not None), None)


def _rows_of_fields(value: Any) -> Optional[int]:
    """The rows that all tensors of a list, tuple or mapping have in common; None for anything else, and for parameters
    of a model.
    """
    parts = _parts(value)
    if not parts or _list_of_samples(value) is not None:
        return None
    if not all(hasattr(part, "shape") and len(part.shape) for part in parts):
        return None
    rows = {part.shape[0] for part in parts}
    if len(rows) > 1 or any(getattr(part, "requires_grad", False) for part in parts):
        return None
    return int(rows.pop())
