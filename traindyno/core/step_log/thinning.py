"""A log of more than a million steps of one process: neighbouring steps become one, with the sums of their numbers."""

from collections.abc import Iterable, Sequence
from math import fsum

from traindyno.core.step_log.fields import LoggedStep
from traindyno.core.step_log.steps import Steps

MOST_STEPS = 1_000_000
Entry = tuple[LoggedStep, int, int]  # as in Steps.entries


class StepWriter:
    """Takes the steps of one process in order. Beyond ``MOST_STEPS`` entries, each two become one."""

    def __init__(self) -> None:
        self._kept = Steps()
        self._group: list[Entry] = []

    def append(self, step: LoggedStep) -> None:
        if self._group and _are_apart(self._group[0][0], step, self._kept.stride):
            self._close_group()
        if len(self._kept) >= MOST_STEPS and not self._group:
            doubled = 2 * self._kept.stride
            if _are_apart(self._kept[-1], step, doubled):
                self._kept = thinned(self._kept, doubled)
        if self._kept.stride == 1:
            self._kept.append(step)
        else:
            self._group.append((step, 1, 0 if step.loss is None else 1))

    def keep_until(self, number: int) -> int:
        """Forget the steps after this one; return how many are left."""
        kept = [entry for entry in self._kept.entries() if entry[0].step <= number]
        self._kept, self._group = Steps(stride=self._kept.stride), [e for e in self._group if e[0].step <= number]
        for step, count, loss_count in kept:
            self._kept.append(step, count=count, loss_count=loss_count)
        return sum(count for _, count, _ in (*kept, *self._group))

    def steps(self) -> Steps:
        """All of them; no further one can be appended."""
        self._close_group()
        return self._kept

    def _close_group(self) -> None:
        if self._group:
            _append_merged(self._kept, self._group)
            self._group = []


def thinned(steps: Steps, stride: int) -> Steps:
    """Groups of ``stride`` numbers, the same ones in each process. ``stride``: a multiple of that of ``steps``."""
    if stride == steps.stride:
        return steps
    thin = Steps(stride=stride)
    group: list[Entry] = []
    for entry in steps.entries():
        if group and _are_apart(group[0][0], entry[0], stride):
            _append_merged(thin, group)
            group = []
        group.append(entry)
    if group:
        _append_merged(thin, group)
    return thin


def with_equal_strides(all_steps: Iterable[Steps]) -> list[Steps]:
    """The steps of all processes of a run, thinned like those of the longest one."""
    found = list(all_steps)
    stride = max((steps.stride for steps in found), default=1)
    return [thinned(steps, stride) for steps in found]


def _are_apart(first: LoggedStep, second: LoggedStep, stride: int) -> bool:
    """Whether they are in different groups. The number of a merged step is that of its last one."""
    return (first.step - 1) // stride != (second.step - 1) // stride


def _append_merged(steps: Steps, group: Sequence[Entry]) -> None:
    parts, loss_count = [step for step, _, _ in group], sum(count for _, _, count in group)
    losses = [step.loss * count for step, _, count in group if step.loss is not None]
    tokens = [step.tokens for step in parts if step.tokens is not None]
    merged = LoggedStep(
        step=parts[-1].step,
        begin=parts[0].begin,
        end=parts[-1].end,
        wait_seconds=fsum(step.wait_seconds for step in parts),
        samples=sum(step.samples for step in parts),
        tokens=sum(tokens) if len(tokens) == len(parts) else None,
        loss=sum(losses) / loss_count if loss_count else None,
        peak_memory_bytes=max((step.peak_memory_bytes for step in parts if step.peak_memory_bytes), default=None),
    )
    steps.append(merged, count=sum(count for _, count, _ in group), loss_count=loss_count)
