"""The training loop: what is timed, step by step."""

from collections.abc import Callable, Iterable

from torch.optim import Optimizer

from traindyno.callbacks import StepLogger
from training.data.batch import Batch, sample_count, token_count
from training.strategies import Setup, Strategy


def run_steps(
    batches_of_steps: Iterable[list[Batch]],
    *,
    setup: Setup,
    strategy: Strategy,
    optimizer: Optimizer,
    step_log: StepLogger,
    should_stop: Callable[[StepLogger], bool],
) -> None:
    accelerator, number_format = setup.accelerator, setup.number_format
    max_norm = setup.settings.gradient_clip_norm

    def clip() -> None:
        if max_norm is not None:
            strategy.clip_gradients(max_norm)

    learning_rate = optimizer.param_groups[0]["lr"]
    strategy.set_training(True)
    for batches in batches_of_steps:
        samples = strategy.share(sum(map(sample_count, batches)))
        tokens = strategy.share(sum(map(token_count, batches)))
        with step_log.step(samples, tokens, learning_rate) as step:
            step.loss = strategy.forward_backward([accelerator.to_device(batch) for batch in batches])
            number_format.step(optimizer, clip, strategy.agree_on_overflow)
            optimizer.zero_grad()
            accelerator.end_step()
        if should_stop(step_log):
            break
    step_log.close_window()
