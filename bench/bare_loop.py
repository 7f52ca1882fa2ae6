"""The least that a step needs: forward, backward, clipping and the optimizer's step, on batches
that are ready.
"""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from bench.plain_model import Weights, plain_model
from bench.trained import Trained
from traindyno.callbacks.clock import clock_for_this_process
from training.data.batch import Batch
from training.data.dataset import TokenDataset
from training.models.optimizer import build_optimizer, mark_decayed
from training.process.run_settings import RunSettings


class BareLoop:
    """A loop in fp32 on one device, without accumulation.

    What a trainer takes beyond this is its own.
    """

    def __init__(
        self,
        run: RunSettings,
        dataset: TokenDataset,
        steps: Sequence[list[Batch]],
        weights: Weights,
    ) -> None:
        self._run = run
        self._tokenizer = dataset.tokenizer
        self._weights = weights
        self._batches = [batch for (batch,) in steps]

    def train(self) -> Trained:
        settings = self._run.settings
        model = plain_model(self._run, self._tokenizer, self._weights).train()
        mark_decayed(model)
        parameters = list(model.parameters())
        optimizer = build_optimizer(parameters, settings, settings.learning_rate.base)
        clock = clock_for_this_process()
        marks = [clock.mark()]
        losses = []
        for batch in self._batches:
            loss = model(**batch).loss
            loss.backward()
            if settings.gradient_clip_norm is not None:
                nn.utils.clip_grad_norm_(parameters, settings.gradient_clip_norm)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
            marks.append(clock.mark())
        return Trained(
            step_seconds=tuple(end - begin for begin, end in pairwise(clock.resolve(marks))),
            tokens=(),
            losses=tuple(map(float, losses)),
        )
