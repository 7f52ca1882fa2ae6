"""The step log of a Hugging Face Trainer: ``Trainer(..., callbacks=[StepLogCallback()])``."""

import functools
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Callable, Dict, Mapping, Optional

from transformers import TrainerCallback

from traindyno.callbacks import process, step_log
from traindyno.callbacks.batch import count_rows, is_joined, own_part
from traindyno.callbacks.checkpoints import mark_complete, written_bytes
from traindyno.callbacks.clock import now
from traindyno.callbacks.environment import weights_of
from traindyno.core.step_log.line import CHECKPOINT, WORK_UNIT

EVALUATION_PREFIX = "eval_"
RATE_SUFFIX = "_per_second"
SAMPLES_PER_BATCH = "StepLogCallback(samples_per_batch=...)"
# Trainers of TRL whose samples are pairs: a batch holds the chosen rows and then the rejected ones,
# or, in earlier versions, the two beside each other.
TRAINERS_OF_PAIRS = {"DPOTrainer", "RewardTrainer", "CPOTrainer", "ORPOTrainer"}
BESIDE_EACH_OTHER = "chosen"
# Functions of DeepSpeed's and Megatron's mpu: how many processes share rows, for each reason
SIZES_OF_MPU = (
    ("get_sequence_parallel_world_size",),
    ("get_context_parallel_world_size",),
    ("get_model_parallel_world_size", "get_tensor_model_parallel_world_size"),
)


class StepLogCallback(TrainerCallback):
    """One line per optimizer step, and phases for evaluating and for checkpoints.

    The samples of a step are the rows of the batches that this process trains on: ``training_step``
    gets each as the loader of this process gave it, whoever made the loader, and no batch of an
    evaluation. If ``samples_per_batch`` is given, each batch counts as so many. Rows that several
    processes train on together are counted once: ``shared_by`` processes, by default as many as
    the trainer's parallelism says.

    A loss function that calls ``self.log`` changes nothing: the log that ends a step is the one
    after it.

    Only steps that Trainer logs have a loss: its mean since the log before. Trainer's own filter,
    which replaces a loss that is not finite by the mean of the others, is switched off, because it
    hides a run that diverged.
    """

    def __init__(
        self, samples_per_batch: Optional[int] = None, *, shared_by: Optional[int] = None
    ) -> None:
        self._samples_per_batch = samples_per_batch
        self._shared_by = shared_by
        self._samples: Any = 0
        self._has_counted = False
        self._learning_rate: Optional[float] = None
        self._is_open = False
        self._awaits_log = False
        self._ended = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not step_log.is_enabled:
            return
        args.logging_nan_inf_filter = False
        step_log.open()  # a refusal is also written to the log
        trainer = _trainer_of_caller()
        collator = getattr(trainer, "data_collator", None)
        is_named = type(collator).__name__ == "DataCollatorWithFlattening"
        joins_rows = is_named or any(
            getattr(owner, "padding_free", False) is True for owner in (trainer, collator)
        )
        step_log.describe(unit_of_samples(args, joins_rows))
        step_log.share_rows(self._shared_by or processes_that_share_rows(trainer))
        # The state has the batch size in use if Trainer searches for one that fits.
        batch = getattr(state, "train_batch_size", None) or args.train_batch_size
        asked = args.train_batch_size if getattr(args, "auto_find_batch_size", False) else None
        step_log.begin_training(state.global_step, batch, asked)
        self._samples = 0
        self._is_open = False
        self._awaits_log = False
        self._ended = now()
        if self._samples_per_batch is None:
            uncounted = getattr(trainer.training_step, "uncounted", trainer.training_step)
            trainer.training_step = self._counting_rows(
                uncounted, joins_rows, samples_of_batches(trainer)
            )
        if kwargs.get("model") is not None:
            step_log.model(**weights_of(kwargs["model"]))

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # Some Trainers (transformers 4.46) go on accumulating into the next epoch, whose first
        # batch begins again.
        if self._awaits_log:
            self._end_step(None)
        if not self._is_open:
            step_log.begin_step()
            self._is_open = True
            self._has_counted = False

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Called after each batch of a step but the last, for which ``on_step_end`` is called."""
        self._samples += self._samples_per_batch or 0

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._samples += self._samples_per_batch or 0
        if step_log.is_enabled and not self._samples_per_batch and not self._has_counted:
            raise RuntimeError(
                "a step ended without a call of Trainer.training_step, which has the batch, so "
                "that its samples are unknown; expected {}".format(SAMPLES_PER_BATCH)
            )
        scheduler = kwargs.get("lr_scheduler")
        self._learning_rate = None if scheduler is None else float(scheduler.get_last_lr()[0])
        self._awaits_log = bool(control.should_log)
        if not control.should_log:
            self._end_step(None)

    def on_log(
        self,
        args: Any,
        state: Any,
        control: Any,
        logs: Optional[Dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        if self._awaits_log:
            loss = (logs or {}).get("loss")
            self._end_step(None if loss is None else float(loss))

    def on_evaluate(
        self,
        args: Any,
        state: Any,
        control: Any,
        metrics: Optional[Dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        self._end_phase("evaluate")
        step_log.evaluation(
            {
                name[len(EVALUATION_PREFIX) :]: float(value)
                for name, value in (metrics or {}).items()
                if name.startswith(EVALUATION_PREFIX) and not name.endswith(RATE_SUFFIX)
            }
        )

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Called after the checkpoint is written: the marker distinguishes it from a truncated one,
        and from one whose steps are not in the log.
        """
        folder = Path(args.output_dir, "checkpoint-{}".format(state.global_step))
        facts: Dict[str, Any] = {"step": step_log.steps}
        step_log.close_window()
        step_log.flush()
        if step_log.is_enabled and state.is_world_process_zero and folder.is_dir():
            mark_complete(folder)
            facts["bytes"] = written_bytes(folder, since=0)
        self._end_phase(CHECKPOINT, facts)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end_step(None)
        step_log.end_training()
        self._ended = now()

    def _end_phase(self, name: str, facts: Optional[Dict[str, Any]] = None) -> None:
        """It began when the step or the phase before it ended."""
        step_log.phase_ended(name, self._ended or now(), facts or {})
        self._ended = now()

    def _end_step(self, loss: Optional[float]) -> None:
        if self._is_open:
            self._is_open = self._awaits_log = False
            step_log.end_step(self._samples, None, loss, self._learning_rate)
            self._samples = 0
            self._ended = now()

    def _counting_rows(
        self, training_step: Callable[..., Any], joins_rows: bool, count: Callable[[Any], Any]
    ) -> Callable[..., Any]:
        @functools.wraps(training_step)
        def counting(model: Any, inputs: Any, *arguments: Any, **options: Any) -> Any:
            samples = count(inputs)
            if joins_rows and not is_joined(inputs) and isinstance(samples, int) and samples == 1:
                raise ValueError(
                    "the collator joins rows into one, and the batch does not say how many they "
                    "are; expected position_ids in the batch "
                    "(return_position_ids=True), or {}".format(SAMPLES_PER_BATCH)
                )
            step_log.note_batch(inputs)
            self._samples += samples
            self._has_counted = True
            return training_step(model, inputs, *arguments, **options)

        counting.uncounted = training_step  # type: ignore[attr-defined]
        return counting


def _trainer_of_caller() -> Any:
    """Trainer gives its callbacks no reference to itself: it is the ``self`` of a method that
    called this one.
    """
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if hasattr(caller, "training_step") and hasattr(caller, "callback_handler"):
            return caller
        frame = frame.f_back
    raise RuntimeError(
        "StepLogCallback was called by no Trainer with a training_step; expected transformers' "
        "Trainer"
    )


def processes_that_share_rows(trainer: Any) -> Optional[int]:
    """How many processes train on the same rows, each on a part of their tokens or of the model, as
    Accelerate's parallelism or the mpu of DeepSpeed's engine says; None if neither says so.
    """
    parallelism = getattr(getattr(trainer, "accelerator", None), "parallelism_config", None)
    processes = getattr(parallelism, "non_data_parallel_size", 1)
    mpu = getattr(getattr(trainer, "model_wrapped", None), "mpu", None)
    if processes == 1:
        for names in SIZES_OF_MPU:
            size_of = next((getattr(mpu, name) for name in names if hasattr(mpu, name)), None)
            processes *= 1 if size_of is None else size_of()
    return processes if processes > 1 else None


def samples_of_batches(trainer: Any) -> Callable[[Any], Any]:
    """How the samples of a batch of this trainer are counted: the pairs of chosen and rejected
    rows, the prompts of a list, else the rows.
    """
    has_pairs = any(
        kind.__name__ in TRAINERS_OF_PAIRS and kind.__module__.startswith("trl.")
        for kind in type(trainer).__mro__
    )
    # TRL repeats each prompt in a batch, and the batch in as many steps as train on its answers.
    repeats = int(getattr(trainer, "num_generations", 1) or 1)
    steps = int(getattr(getattr(trainer, "args", None), "steps_per_generation", 1) or 1)
    steps *= int(getattr(trainer, "num_iterations", 1) or 1)
    place = process.this_process().rank

    def count(batch: Any) -> Any:
        nonlocal place
        if isinstance(batch, list) and batch and all(map(is_prompt, batch)):
            samples = own_part(len(batch), repeats * steps, place)
            place += process.this_process().world_size
            return samples
        rows = count_rows(batch, instead=SAMPLES_PER_BATCH)
        is_beside = isinstance(batch, Mapping) and any(
            BESIDE_EACH_OTHER in str(name) for name in batch
        )
        return rows // 2 if has_pairs and not is_beside else rows

    return count


def is_prompt(value: Any) -> bool:
    """Whether a part of a batch is a row as the data set has it, without a tensor."""
    return isinstance(value, Mapping) and not any(
        hasattr(tensor, "shape") for tensor in value.values()
    )


def unit_of_samples(args: Any, joins_rows: bool) -> Dict[str, str]:
    """TRL's packed blocks hold several rows: they can't be compared with rows, or with blocks of
    another length. The blocks of the strategy bfd have whole rows, which are counted.
    """
    keeps_rows = joins_rows and getattr(args, "packing_strategy", "wrapped") == "bfd"
    if keeps_rows or not getattr(args, "packing", False):
        return {}
    length = getattr(args, "max_length", None) or getattr(args, "max_seq_length", None)
    return {
        WORK_UNIT: "packed blocks"
        if length is None
        else "packed blocks of {} tokens".format(length)
    }
