"""The input channels of a run: the parts of its workload in S3, and prepared tokens."""

from collections.abc import Iterator
from typing import Any

from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.checks.job_limits_check import MODEL_CHANNEL, TOKENIZER_CHANNEL, TRAIN_CHANNEL
from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.preparation import DataPreparation
from traindyno.core.suite.suite import Run
from traindyno.core.suite.workload import Workload

# The container's folder of all channels.
CONTAINER_CHANNELS = "/opt/ml/input/data"


def run_channels(run: Run, workload: Workload) -> list[dict[str, Any]]:
    """Prepared tokens replace the dataset and bring their tokenizer."""
    further = [channel(name, uri, InputMode.FILE) for name, uri in workload.channels.items()]
    return [*_dataset_channel(run, workload), *_pretrained_channels(run, workload), *further]


def _dataset_channel(run: Run, workload: Workload) -> Iterator[dict[str, Any]]:
    dataset = workload.dataset
    if dataset is None or dataset.input_mode is InputMode.STREAM:
        return
    prepared = run.tokens.s3_uri if run.tokens else None
    uri = prepared or dataset.path
    if uri and is_s3_uri(uri):
        yield channel(TRAIN_CHANNEL, uri, dataset.input_mode)


def _pretrained_channels(run: Run, workload: Workload) -> Iterator[dict[str, Any]]:
    """A tokenizer uses the model's channel, unless a different model is in it."""
    model = workload.model.path if workload.model else None
    tokenizer = workload.tokenizer.path if workload.tokenizer else None
    if model and is_s3_uri(model):
        yield channel(MODEL_CHANNEL, model, InputMode.FILE)
    if tokenizer and is_s3_uri(tokenizer) and tokenizer != model and run.tokens is None:
        yield channel(TOKENIZER_CHANNEL if is_s3_uri(model) else MODEL_CHANNEL, tokenizer, InputMode.FILE)


def preparation_channels(preparation: DataPreparation, workload: Workload) -> list[dict[str, Any]]:
    """The model, and for tokens the dataset and the tokenizer, if they are in S3.

    The dataset's files are not copied to the volume: each is read once, from its beginning, and not to its end if the
    runs need less.
    """
    dataset = None if preparation.stages_model else workload.dataset
    is_in_s3 = dataset is not None and is_s3_uri(dataset.path)
    channels = [channel(TRAIN_CHANNEL, str(dataset.path), InputMode.FAST_FILE)] if dataset and is_in_s3 else []
    model = workload.model.path if workload.model else None
    tokenizer = workload.tokenizer.path if workload.tokenizer and not preparation.stages_model else None
    if is_s3_uri(model):
        # The configuration, the tokenizer's files and the headers of the weights are read.
        channels.append(channel(MODEL_CHANNEL, model, InputMode.FAST_FILE))
    if is_s3_uri(tokenizer) and tokenizer != model:
        channels.append(channel(TOKENIZER_CHANNEL if is_s3_uri(model) else MODEL_CHANNEL, tokenizer, InputMode.FILE))
    return channels


def channel(name: str, uri: str, mode: InputMode) -> dict[str, Any]:
    """One entry of InputDataConfig."""
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    entry: dict[str, Any] = {"DataSource": {"S3DataSource": source}, "ChannelName": name}
    if mode is not InputMode.FILE:
        entry["InputMode"] = mode.value
    return entry
