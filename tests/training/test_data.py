"""Order, shares, padding, masking and labels of training data, by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from traindyno.core.run.settings import Settings
from traindyno.core.suite.choices import Padding, Strategy, Task
from training.data.collate import Collate, Masking, PadTo
from training.data.dataset import hold_out
from training.data.labels import Labelled, number_labels
from training.data.loader import BucketedOrder, SeededOrder, StepBatches
from training.data.sequences import Sequences, end_to_end
from training.errors import WorkloadError
from training.models.objective import IGNORED_LABEL


def ragged(*lengths: int) -> Sequences:
    """Sequence n holds the token n + 1, ``lengths[n]`` times; its label is n."""
    tokens = np.concatenate(
        [np.full(length, number + 1, dtype=np.uint16) for number, length in enumerate(lengths)]
    )
    return end_to_end(tokens, np.asarray(lengths), np.arange(len(lengths), dtype=np.int64))


def settings(**values: object) -> Settings:
    return Settings(instance="local.cpu", strategy=Strategy.DDP, **values)  # type: ignore[arg-type]


def test_every_epoch_has_every_sample_once_in_an_order_of_its_own() -> None:
    order = SeededOrder(5, 5, seed=1)
    epochs = [order.step(step).tolist() for step in range(4)]
    assert all(sorted(epoch) == [0, 1, 2, 3, 4] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1
    assert epochs == [SeededOrder(5, 5, seed=1).step(step).tolist() for step in range(4)]


def test_a_step_larger_than_the_dataset_straddles_epochs() -> None:
    step = SeededOrder(3, 7, seed=0).step(0).tolist()
    assert (sorted(step[:3]), sorted(step[3:6]), len(step)) == ([0, 1, 2], [0, 1, 2], 7)


def test_buckets_bring_like_lengths_into_one_step_and_leave_no_sample_out() -> None:
    lengths = np.arange(1, 257, dtype=np.int64)
    order = BucketedOrder(SeededOrder(256, 4, seed=0), lengths, 4, seed=0)
    steps = [order.step(step) for step in range(64)]
    assert all(np.ptp(lengths[step]) == 3 for step in steps)
    assert sorted(np.concatenate(steps).tolist()) == list(range(256))
    assert not all(steps[n].max() < steps[n + 1].min() for n in range(63))


def test_ranks_and_accumulated_batches_partition_the_global_step() -> None:
    data = ragged(*[1] * 24)
    collate = Collate(task=Task.SEQUENCE_CLASSIFICATION, pad_to=None)
    one = StepBatches(
        data, collate, settings(batch_size_per_device=12), data_rank=0, data_world_size=1
    )
    options = settings(batch_size_per_device=3, gradient_accumulation_steps=2)
    seen = [
        int(label)
        for rank in range(2)
        for batch in StepBatches(data, collate, options, data_rank=rank, data_world_size=2)[1]
        for label in batch["labels"]
    ]
    assert sorted(seen) == sorted(one[1][0]["labels"].tolist())


def test_batches_weigh_by_the_labels_they_hold() -> None:
    # Lengths 2 and 4 on two ranks: 1 and 3 next-token labels of 4; mean of the ranks' weighted
    # means = mean over all 4.
    data = ragged(2, 4)
    pad_to = PadTo(padding=Padding.LONGEST, sequence_length=8, pad_token=0)
    weights = {}
    for rank in range(2):
        (batch,) = StepBatches(
            data,
            Collate(task=Task.CAUSAL_LM, pad_to=pad_to),
            settings(batch_size_per_device=1),
            data_rank=rank,
            data_world_size=2,
        )[0]
        weights[batch["input_ids"].shape[1]] = float(batch["weight"])
    assert weights == {2: 1 * 2 / 4, 4: 3 * 2 / 4}


@pytest.mark.parametrize(
    ("padding", "width"), [(Padding.MAX_LENGTH, 32), (Padding.LONGEST, 5), (Padding.BUCKET, 8)]
)
def test_padding_gives_the_width_of_its_policy(padding: Padding, width: int) -> None:
    # Buckets of a 32-token limit are multiples of 32 / 8 = 4: five tokens go into 8.
    collate = Collate(
        task=Task.SEQUENCE_CLASSIFICATION,
        pad_to=PadTo(padding=padding, sequence_length=32, pad_token=9),
    )
    batch = collate(ragged(3, 5), np.array([0, 1]), np.array([0, 1]))
    assert batch["input_ids"].shape == (2, width)
    assert batch["input_ids"][0].tolist() == [1, 1, 1] + [9] * (width - 3)
    assert batch["attention_mask"].sum(1).tolist() == [3, 5]


def test_padding_is_no_label_of_a_language_model() -> None:
    pad_to = PadTo(padding=Padding.LONGEST, sequence_length=8, pad_token=0)
    batch = Collate(task=Task.CAUSAL_LM, pad_to=pad_to)(
        ragged(2, 3), np.array([0, 1]), np.array([0, 1])
    )
    assert batch["labels"].tolist() == [[1, 1, IGNORED_LABEL], [2, 2, 2]]


def test_masking_hides_the_same_number_in_every_row_and_never_the_frame() -> None:
    masking = Masking(seed=3, mask_token=4, vocabulary_size=100)
    tokens = np.tile(np.arange(10, 52, dtype=np.int64), (200, 1))  # 42 tokens: 40 of text, 15 % = 6
    inputs, labels = masking(tokens, None, np.arange(200))
    chosen = labels != IGNORED_LABEL
    assert (chosen.sum(axis=1) == 6).all()
    assert not chosen[:, [0, -1]].any()
    assert (labels[chosen] == tokens[chosen]).all()
    assert (inputs[~chosen] == tokens[~chosen]).all()
    assert 0.75 < (inputs[chosen] == 4).mean() < 0.85
    assert len({tuple(row) for row in chosen}) > 190


def test_a_samples_mask_depends_on_its_place_in_the_order_only() -> None:
    masking = Masking(seed=3, mask_token=4, vocabulary_size=100)
    tokens = np.tile(np.arange(10, 52, dtype=np.int64), (4, 1))
    together = masking(tokens, None, np.array([5, 6, 7, 8]))[0]
    alone = masking(tokens[:1], None, np.array([7]))[0]
    assert (together[2] == alone[0]).all()


def test_short_rows_are_masked_within_their_text() -> None:
    masking = Masking(seed=0, mask_token=4, vocabulary_size=100)
    mask = np.arange(12) < np.array([[12], [4]])
    _, labels = masking(np.full((2, 12), 50, dtype=np.int64), mask, np.array([0, 1]))
    # 15 % of 10 is 1.5, rounded to even; at least one of 2
    assert (labels != IGNORED_LABEL).sum(axis=1).tolist() == [2, 1]
    assert set(np.flatnonzero(labels[1] != IGNORED_LABEL)) <= {1, 2}


def labels(*values: object) -> list[Labelled]:
    return [Labelled(value, "train.csv", row) for row, value in enumerate(values, start=1)]


@pytest.mark.parametrize(
    "values", [(2, 0, True), (2.0, 0.0, 1.0), ("2", "0", "1"), ("2.0", "0", "1.0")]
)
def test_labels_of_whole_numbers_stay_the_same(values: tuple[object, ...]) -> None:
    numbers = number_labels(labels(*values), 3)
    assert [numbers.number(label) for label in labels(*values)] == [2, 0, 1]
    assert numbers.names == {}


def test_text_labels_are_numbered_in_alphabetical_order() -> None:
    one, other = (
        number_labels(labels(*values), 2) for values in (("good", "bad"), ("bad", "good", "bad"))
    )
    assert one == other
    assert [one.number(label) for label in labels("good", "bad", "good")] == [1, 0, 1]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (("positive", "negative", "neutral"), [1, 0, 1]),  # FinBERT's order
        (("NEUTRAL", "Negative", "Positive"), [1, 2, 1]),
        (("good", "bad", "fair"), [0, 1, 0]),  # others: the alphabet's order
        (("positive", "negative", "Negative"), [1, 0, 1]),  # the exact name decides
        (("positive", "NEGATIVE", "Negative"), [0, 1, 0]),  # two could be meant
        ((), [0, 1, 0]),
    ],
)
def test_text_labels_keep_the_numbers_of_a_saved_head(
    head: tuple[str, ...], expected: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = number_labels(labels("negative", "positive", "negative"), 3, head)
    assert [
        numbers.number(label) for label in labels("negative", "positive", "negative")
    ] == expected
    is_of_head = bool(head) and numbers.by_number == head
    assert ("are not those of the model's saved head" in capsys.readouterr().out) is (
        bool(head) and not is_of_head
    )
    assert [numbers.by_number[number].lower() for number in expected] == [
        "negative",
        "positive",
        "negative",
    ]


@pytest.mark.parametrize(
    ("values", "label_count", "message"),
    [
        (
            ("good", "fair", "bad"),
            2,
            r"3 different labels \(bad, fair, good\); workload.label_count says 2",
        ),
        ((0, 3), 3, "train.csv, row 2: the label is 3; expected 0 to 2"),
        ((0, -1), None, "train.csv, row 2: the label is -1; expected a whole number from 0"),
    ],
)
def test_labels_outside_the_count_are_refused_with_file_and_row(
    values: tuple[object, ...], label_count: int | None, message: str
) -> None:
    with pytest.raises(WorkloadError, match=message):
        numbers = number_labels(labels(*values), label_count)
        [numbers.number(label) for label in labels(*values)]


@pytest.mark.parametrize(("count", "samples_per_step"), [(64, 8), (64, 5), (1000, 12), (7, 16)])
def test_buckets_have_each_sample_once_an_epoch(count: int, samples_per_step: int) -> None:
    lengths = np.arange(count)[::-1].copy()
    bucketed = BucketedOrder(
        SeededOrder(count, samples_per_step, seed=2), lengths, samples_per_step, seed=2
    )
    epochs = 3
    seen = np.concatenate(
        [bucketed.step(step) for step in range(epochs * count // samples_per_step + 1)]
    )
    for epoch in range(epochs):
        assert sorted(seen[epoch * count : (epoch + 1) * count]) == list(range(count))


def test_held_out_rows_are_drawn_at_random_from_every_class_in_its_proportion() -> None:
    sequences = ragged(*[3] * 400).select(np.arange(400))
    by_class = replace(sequences, labels=np.repeat([0, 1], [300, 100]))
    train, held_out = hold_out(by_class, seed=1)
    assert held_out.labels is not None
    assert (len(train), len(held_out)) == (380, 20)
    assert np.bincount(held_out.labels).tolist() == [15, 5]
    assert not set(train.begins) & set(held_out.begins)
    assert held_out.begins.max() - held_out.begins.min() > 600  # not the last rows only
    assert len(set(np.diff(held_out.begins))) > 3  # nor every n-th
    assert hold_out(by_class, seed=1)[1].begins.tolist() == held_out.begins.tolist()
    assert hold_out(by_class, seed=2)[1].begins.tolist() != held_out.begins.tolist()


def test_selected_sequences_of_one_length_are_read_as_blocks() -> None:
    part = ragged(2, 2, 2, 2).select(np.array([1, 3]))
    assert part.block(np.array([1, 0])).tolist() == [[4, 4], [2, 2]]


def test_batches_have_the_types_of_models_inputs() -> None:
    batch = Collate(task=Task.SEQUENCE_CLASSIFICATION, pad_to=None)(
        ragged(2, 2), np.array([1, 0]), np.array([0, 1])
    )
    assert {name: tensor.dtype for name, tensor in batch.items()} == {
        "input_ids": torch.int64,
        "labels": torch.int64,
    }
