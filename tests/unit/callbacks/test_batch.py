"""A batch's rows are counted, or it is refused: never another number."""

import random
from collections import OrderedDict, UserDict
from typing import Any

import numpy as np
import pytest

from traindyno.callbacks.batch import count_rows, refuse_length_of_batch


def is_refused(samples: int, variables: dict[str, Any]) -> bool:
    try:
        refuse_length_of_batch(samples, variables)
    except ValueError:
        return True
    return False


def nested(draw: random.Random, rows: int, depth: int = 0) -> Any:
    """Fields of a dataset as loaders collate them: each tensor of another type or number of
    dimensions.
    """
    kinds = [
        np.zeros((rows, 3)),
        np.zeros(rows, dtype=int),
        np.zeros((rows, 2, 2, 2)),
        np.zeros((rows, 1), dtype="f4"),
    ]
    parts: list[Any] = [draw.choice(kinds)] + [
        draw.choice([np.float64(1), "text", None, 7, []])
    ] * draw.randint(0, 2)
    if depth < 3 and draw.random() < 0.6:
        parts.append(nested(draw, rows, depth + 1))
    draw.shuffle(parts)
    names = [f"field {index}" for index in range(len(parts))]
    fields = dict(zip(names, parts, strict=True))
    return draw.choice([parts, tuple(parts), fields, UserDict(fields)])


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_counted_at_any_depth(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(50):
        rows = draw.randint(1, 64)
        assert count_rows(nested(draw, rows)) == rows


@pytest.mark.parametrize(
    "batch", [[], {}, [1, 2], ["a", "b"], {"text": "b"}, np.float64(3), 7, object(), [[], ()]]
)
def test_a_batch_without_tensors_is_refused(batch: Any) -> None:
    with pytest.raises(
        ValueError, match="holds no tensor with a first dimension; expected one, or samples="
    ):
        count_rows(batch)


def test_tensors_of_different_lengths_are_refused() -> None:
    images = [np.zeros((3, 20, 30)), np.zeros((3, 20, 20))]
    boxes = [{"boxes": np.zeros((2, 4))}, {"boxes": np.zeros((5, 4))}]
    with pytest.raises(
        ValueError,
        match="differ: 2, 3, 5; expected the same for all, the number of samples, or mine=",
    ):
        count_rows((images, boxes), instead="mine=...")


@pytest.mark.parametrize("count", [2, 3, 4, 5, 16])
@pytest.mark.parametrize("shape", [(3, 20, 30), (20,), (20, 5), (7, 3, 20, 30)])
def test_a_list_with_possibly_one_tensor_for_each_sample_is_refused(
    count: int, shape: tuple[int, ...]
) -> None:
    """Two to four tensors that are no images are the fields of a dataset, as features and labels
    are.
    """
    batch = [np.zeros(shape) for _ in range(count)]
    if count <= 4 and len(shape) != 3:
        assert count_rows(batch) == shape[0]
    else:
        with pytest.raises(
            ValueError, match=rf"so that it holds .*\b{count * shape[0]} samples; expected"
        ):
            count_rows({"images": batch})


@pytest.mark.parametrize(
    "sample",
    [
        {"input_ids": np.zeros(128, dtype=int), "labels": np.zeros(128, dtype=int)},
        (np.zeros((3, 32, 32)), 7),
        (np.zeros((128, 4)), "a name"),
    ],
    ids=["mappings", "images with labels", "sequences with names"],
)
def test_an_uncollated_batch_is_refused(sample: Any) -> None:
    for count in (2, 3, 32):
        with pytest.raises(
            ValueError,
            match=rf"a list of {count} parts of one kind.*samples, fields or micro-batches",
        ):
            count_rows([sample] * count)
        refuse_length_of_batch(count, {"batch": [sample] * count})


@pytest.mark.parametrize("count", [2, 4, 5, 8])
@pytest.mark.parametrize("seed", range(10))
def test_a_list_of_micro_batches_is_refused(seed: int, count: int) -> None:
    """Whatever a micro-batch is, in a list that may be a field of the batch.

    Fields with names are fields.
    """
    draw = random.Random(seed)
    while hasattr(part := nested(draw, 8), "shape"):
        pass
    for batch in ([part] * count, (part,) * count, {"parts": [part] * count}):
        with pytest.raises(ValueError, match=r"micro-batches.*expected samples="):
            count_rows(batch)
    assert count_rows({"query": part, "passage": part}) == 8


def joined(lengths: list[int], begin: int = 0, padding: int = 0) -> Any:
    positions = [begin + token for length in lengths for token in range(length)]
    return {
        "input_ids": np.zeros((1, len(positions) + padding)),
        "position_ids": np.array([positions + [0] * padding]),
    }


@pytest.mark.parametrize("seed", range(20))
def test_rows_joined_into_one_are_counted(seed: int) -> None:
    draw = random.Random(seed)
    lengths = [draw.randint(2, 9) for _ in range(draw.randint(1, 8))]
    assert count_rows(joined(lengths, begin=draw.randint(0, 2), padding=draw.randint(0, 3))) == len(
        lengths
    )
    ends = np.cumsum([0, *lengths])
    assert count_rows(
        {"input_ids": np.zeros((1, ends[-1])), "cu_seq_lens_q": ends, "max_length_q": 9}
    ) == len(lengths)
    index = np.repeat(np.arange(len(lengths)), lengths)[None]
    assert count_rows({"input_ids": np.zeros((1, ends[-1])), "seq_idx": index}) == len(lengths)
    padded = {"input_ids": np.zeros((4, 9)), "position_ids": np.arange(36).reshape(4, 9)}
    assert count_rows(padded) == 4


class Frame:
    """What a pandas.DataFrame has of a mapping; its values are one array, and no method."""

    values = np.zeros((2, 8))

    def keys(self) -> list[str]:
        return ["a", "b"]

    def __len__(self) -> int:
        return 2


class Parameter(np.ndarray[Any, Any]):
    requires_grad = True


@pytest.mark.parametrize(
    "value",
    [
        [np.zeros((16, 8)), np.zeros((16, 1))],
        (np.zeros((16, 8)), np.zeros(16)),
        {"x": np.zeros((16, 8)), "y": np.zeros(16)},
        UserDict(x=np.zeros((16, 8)), y=np.zeros(16)),
    ],
    ids=["list", "tuple", "dict", "encoding"],
)
def test_the_length_of_a_batch_is_no_count_of_samples(value: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"samples=2 is len\(batch\), .* holds 16 rows; expected step_log.step\(batch=b",
    ):
        refuse_length_of_batch(2, {"other": 2, "batch": value})
    assert not is_refused(16, {"batch": value})
    assert not is_refused(3, {"batch": value})


@pytest.mark.parametrize(
    "value",
    [
        [np.zeros((2, 8)), np.zeros((2, 1))],
        [np.zeros((16, 8)), "text"],
        [np.zeros((16, 8)), np.zeros((4, 1))],
        [np.float64(1), np.float64(2)],
        [np.zeros((16, 8)).view(Parameter), np.zeros(16).view(Parameter)],
        np.zeros((2, 8)),
        [np.zeros((3, 32, 32)), np.zeros((3, 32, 32))],
        "ab",
        2,
        OrderedDict,
        UserDict,
        Frame(),
    ],
    ids=[
        "its rows",
        "text",
        "lengths",
        "losses",
        "parameters",
        "a tensor",
        "images",
        "a text",
        "a number",
        "a class",
        "another class",
        "a data frame",
    ],
)
def test_other_variables_of_the_same_length_are_no_batch(value: Any) -> None:
    assert not is_refused(2, {"value": value})
    with pytest.raises(ValueError, match=r"samples=2 is len\(batch\)"):
        refuse_length_of_batch(2, {"value": value, "batch": [np.zeros((16, 8)), np.zeros((16, 1))]})


class Whole(list[Any]):
    """A data set in memory, which takes long to look through."""

    looks = 0

    def __iter__(self) -> Any:
        self.looks += 1
        return super().__iter__()


def test_a_data_set_among_the_variables_is_not_looked_through() -> None:
    data = Whole([[1, 2]] * 1000)
    assert not is_refused(2, {"data": data})
    assert data.looks == 0
