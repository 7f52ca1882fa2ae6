"""Makes the folder of a saved model servable, by an inference handler with samples of answers."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import torch
import transformers
from transformers import PreTrainedTokenizerBase

from traindyno.callbacks.process import this_process
from traindyno.core.run.workload import Workload
from traindyno.core.s3_keys import SAMPLES_FILE
from traindyno.core.serving.samples import (
    EvaluationSample,
    EvaluationSamples,
    ScoredLabel,
    samples_document,
)
from traindyno.core.step_log.line import DIRECTORY_VARIABLE
from traindyno.core.suite.choices import Task
from training import inference
from training.data.dataset import TokenDataset
from training.data.sequences import Sequences

SAMPLE_COUNT = 8
# Texts are short: the samples are answered on the CPU while the job is still billed.
MOST_TOKENS = 64


def make_servable(folder: Path, workload: Workload, dataset: TokenDataset) -> None:
    """Adds what an endpoint needs to the folder of a saved model.

    Without a tokenizer no text can be served, and nothing is written.
    """
    if dataset.tokenizer is None:
        return
    code = folder / "code"
    code.mkdir(exist_ok=True)
    shutil.copyfile(inference.__file__, code / "inference.py")
    # PyTorch's inference container installs this file when it starts. It has no transformers of its
    # own.
    (code / "requirements.txt").write_text(f"transformers=={transformers.__version__}\n")
    task = workload.task
    arguments = dict(workload.dataset.chat_template_kwargs) if workload.dataset else {}
    settings = {"task": task.value, "chat_template_kwargs": arguments}
    (folder / inference.SETTINGS_FILE).write_text(json.dumps(settings))
    sequences = dataset.evaluation or dataset.train
    if sequences is not None:
        text = json.dumps(samples_document(_samples(folder, task, dataset.tokenizer, sequences)))
        (folder / SAMPLES_FILE).write_text(text)
        directory = os.environ.get(DIRECTORY_VARIABLE)
        if directory:  # the lab reads them there, without the whole archive
            (Path(directory) / this_process().job_name / SAMPLES_FILE).write_text(text)


def _samples(
    folder: Path, task: Task, tokenizer: PreTrainedTokenizerBase, sequences: Sequences
) -> EvaluationSamples:
    """The model is read from its folder, as by an endpoint: the trained one is sharded, wrapped or
    on a full device.
    """
    texts = list(_texts(task, tokenizer, sequences))
    answers = inference.predict(texts, inference.load(folder, torch.device("cpu"))) if texts else []
    samples = (
        EvaluationSample(
            inputs=text,
            predictions=tuple(ScoredLabel(**prediction) for prediction in answer["predictions"]),
        )
        for text, answer in zip(texts, answers, strict=True)
    )
    return EvaluationSamples(task=task, samples=tuple(samples))


def _texts(task: Task, tokenizer: PreTrainedTokenizerBase, sequences: Sequences) -> Iterator[str]:
    """Yields the beginnings of sequences that are spread evenly over the data; for a masked model
    each has one mask.
    """
    step = max(len(sequences) // SAMPLE_COUNT, 1)
    for number in range(0, min(len(sequences), step * SAMPLE_COUNT), step):
        begin = int(sequences.begins[number])
        length = int(sequences.lengths[number])
        ids = [int(token) for token in sequences.tokens[begin : begin + min(length, MOST_TOKENS)]]
        plain = [token for token in ids if token not in tokenizer.all_special_ids]
        if task is Task.MASKED_LM and plain:
            middle = len(plain) // 2
            before = tokenizer.decode(plain[:middle])
            after = tokenizer.decode(plain[middle + 1 :])
            yield f"{before}{tokenizer.mask_token}{after}"
        elif plain:
            yield str(tokenizer.decode(plain))
