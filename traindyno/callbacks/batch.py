"""How many samples a batch holds: the rows of its tensors, or an error where the batch does not say
it; and a checksum of its content.
"""

import itertools
import math
import zlib
from typing import Any, Iterator, Mapping, Optional, Tuple

from traindyno.callbacks.recorder import is_on_device

MOST_TENSORS_OF_A_SAMPLE = 4
DIMENSIONS_OF_AN_IMAGE = 3
# What a batch of one row has where that row is several, joined: numbers of the tokens, or ends of
# the rows.
POSITIONS_OF_JOINED = "position_ids"
INDEX_OF_JOINED = "seq_idx"
ENDS_OF_JOINED = ("cu_seq_lens_q", "cu_seqlens_q", "cu_seqlens")
ROWS_OF_TOKENS = "input_ids"
MOST_CHECKED_VALUES = 2**16  # of a tensor


def count_rows(batch: Any, instead: str = "samples=...") -> Any:
    """Returns the samples of a batch: the first dimension of the tensors in nested lists, tuples
    and mappings.

    Rows of tokens are the samples whatever else is beside them, as patches of their pictures. Of
    rows that a collator joined into one, the result is a tensor if only a device has their
    number. Raises ValueError if there is no tensor, if their first dimensions differ, or if a list
    may hold samples or micro-batches. ``instead`` is what the script can write then.
    """
    joined = _joined_rows(batch)
    if joined is not None:
        return joined
    tokens = batch.get(ROWS_OF_TOKENS) if isinstance(batch, Mapping) else None
    if len(getattr(tokens, "shape", ())) > 1:
        return int(tokens.shape[0])  # type: ignore[union-attr]
    rows = sorted({int(tensor.shape[0]) for tensor in _tensors(batch)})
    if not rows:
        raise ValueError(
            "the batch, a {}, holds no tensor with a first dimension; expected one, or {}".format(
                type(batch).__name__, instead
            )
        )
    if len(rows) > 1:
        raise ValueError(
            "the first dimensions of the batch's tensors differ: {}; expected the same for all, "
            "the number of samples, or {}".format(", ".join(map(str, rows)), instead)
        )
    samples = _list_of_samples(batch)
    if samples is not None:
        count = len(samples)
        numbers = sorted({count, rows[0], count * rows[0]})
        raise ValueError(
            "the batch holds a list of {} parts of one kind, the first tensor of shape {}: they "
            "may be samples, fields or micro-batches, so that "
            "it holds {} samples; expected {}".format(
                count, tuple(samples[0].shape), " or ".join(map(str, numbers)), instead
            )
        )
    return rows[0]


def own_part(count: Any, parts: int, place: int) -> Any:
    """The part of ``count`` that one of ``parts`` places counts, so that consecutive places count
    it once.
    """
    return (place + 1) * count // parts - place * count // parts


def checksum(batch: Any) -> Optional[int]:
    """Checksum of the values of a batch's tensors, evenly drawn from large ones; None without
    tensors.

    It waits for a device.
    """
    digest = None
    for tensor in _tensors(batch):
        values = tensor.detach().cpu() if hasattr(tensor, "detach") else tensor
        flat = values.reshape(-1)
        drawn = flat[:: max(1, flat.shape[0] // MOST_CHECKED_VALUES)]
        text = repr((tuple(values.shape), drawn.tolist()))
        digest = zlib.crc32(text.encode(), digest or 0)
    return digest


def values_per_row(batch: Any) -> int:
    """Values per row of all tensors that have more than one for each row."""
    shapes = [tuple(tensor.shape) for tensor in _tensors(batch)]
    return sum(math.prod(shape[1:]) for shape in shapes if len(shape) > 1)


def refuse_length_of_batch(samples: int, variables: Mapping[str, Any]) -> None:
    """Raises ValueError if ``samples`` is the length of a list, tuple or mapping of tensors that
    hold other numbers of rows. ``variables`` are those of the script where the step begins.
    """
    for name, value in variables.items():
        # A script's variables may be whole data sets: only those of this length are looked into.
        is_of_that_length = (isinstance(value, (list, tuple, Mapping))) and len(value) == samples
        rows = _rows_of_fields(value) if is_of_that_length else None
        if rows is not None and rows != samples:
            raise ValueError(
                "samples={0} is len({1}), the number of tensors in {1}, and each of them holds "
                "{2} rows; expected step_log.step(batch={1}), which counts the rows, or "
                "samples={2}".format(samples, name, rows)
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
    if isinstance(
        batch, Mapping
    ):  # no class and no data frame, which have the methods of a mapping too
        return tuple(batch.values())
    return tuple(batch) if isinstance(batch, (list, tuple)) else ()


def _list_of_samples(batch: Any) -> Optional[Tuple[Any, ...]]:
    """The first tensor of each part of a list or tuple, at any depth, whose parts may be samples,
    as for images of several sizes and for a batch that is not collated, or micro-batches.

    Tensors of one type and number of dimensions are such a list if they are many, or have the
    dimensions of an image; lists, tuples and mappings are one if they have one structure.
    """
    parts = _parts(batch)
    tensors = tuple(tensor for part in parts for tensor in itertools.islice(_tensors(part), 1))
    if isinstance(batch, (list, tuple)) and len(tensors) == len(parts) > 1:
        is_one_kind = len({(len(tensor.shape), str(tensor.dtype)) for tensor in tensors}) == 1
        is_image = len(tensors[0].shape) == DIMENSIONS_OF_AN_IMAGE
        if is_one_kind and (len(parts) > MOST_TENSORS_OF_A_SAMPLE or is_image):
            return tensors
        if (
            not any(hasattr(part, "shape") for part in parts)
            and len({str(_structure(part)) for part in parts}) == 1
        ):
            return tensors
    return next((samples for samples in map(_list_of_samples, parts) if samples is not None), None)


def _structure(value: Any) -> Any:
    if hasattr(value, "shape"):
        return len(value.shape), str(value.dtype)
    if isinstance(value, Mapping):
        return {str(name): _structure(value[name]) for name in sorted(value, key=str)}
    return (
        [_structure(part) for part in value]
        if isinstance(value, (list, tuple))
        else type(value).__name__
    )


def is_joined(batch: Any) -> bool:
    return _joined_rows(batch) is not None


def _joined_rows(batch: Any) -> Any:
    """The rows that a collator joined into one row of all tokens, as transformers'
    DataCollatorWithFlattening and TRL's ``padding_free`` do. None if the batch is another one.

    The positions of their tokens begin again with each, or the batch has their ends. A row of one
    token trains nothing and is not counted by positions, nor is padding behind the last one.
    """
    if not isinstance(batch, Mapping):
        return None
    for name, step in ((POSITIONS_OF_JOINED, 1), (INDEX_OF_JOINED, 0)):
        numbers: Any = batch.get(name)
        shape = tuple(getattr(numbers, "shape", ()))
        if len(shape) == 2 and shape[0] == 1 and shape[1] > 1:  # noqa: PLR2004
            goes_on = numbers[0][1:] == numbers[0][:-1] + step
            count = goes_on[:1].sum() + (goes_on[1:] & ~goes_on[:-1]).sum()
            return count if is_on_device(count) else int(count) or None
    ends = next((batch[name] for name in ENDS_OF_JOINED if hasattr(batch.get(name), "shape")), None)
    return int(ends.shape[0]) - 1 if ends is not None and len(ends.shape) == 1 else None


def _rows_of_fields(value: Any) -> Optional[int]:
    """The rows that all tensors of a list, tuple or mapping have in common; None for anything else,
    and for parameters of a model.
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
