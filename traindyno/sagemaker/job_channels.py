"""The input channels of a job: what of its workload lies in S3, and the tokens that were made of it."""

from collections.abc import Iterator
from typing import Any

from traindyno.core.suite.job_limits_check import MODEL_CHANNEL, TOKENIZER_CHANNEL, TRAIN_CHANNEL
from traindyno.core.suite.suite import InputMode, Run, Workload


def build_channels(run: Run, workload: Workload) -> list[dict[str, Any]]:
    """Prepared tokens take the dataset's place and bring their tokenizer; who prepares them reads nothing else."""
    channels = [*_data(run, workload), *_pretrained(run, workload)]
    if not run.is_preparation:
        channels += [_channel(name, uri, InputMode.FILE) for name, uri in workload.channels.items()]
    return channels


def _data(run: Run, workload: Workload) -> Iterator[dict[str, Any]]:
    dataset = workload.dataset
    if dataset is None or dataset.input_mode is InputMode.STREAM:
        return
    prepared = run.tokens.s3_uri if run.tokens else None
    uri = prepared or dataset.path
    if uri and is_in_s3(uri):
        yield _channel(TRAIN_CHANNEL, uri, dataset.input_mode)


def _pretrained(run: Run, workload: Workload) -> Iterator[dict[str, Any]]:
    """A tokenizer comes through the model's channel unless a different model is there already."""
    model = workload.model.path if workload.model else None
    tokenizer = workload.tokenizer.path if workload.tokenizer else None
    if model and is_in_s3(model):
        # A preparation opens no file of the model but its tokenizer's.
        yield _channel(MODEL_CHANNEL, model, InputMode.FAST_FILE if run.is_preparation else InputMode.FILE)
    needs_tokenizer = run.tokens is None or run.is_preparation
    if tokenizer and is_in_s3(tokenizer) and tokenizer != model and needs_tokenizer:
        yield _channel(TOKENIZER_CHANNEL if is_in_s3(model) else MODEL_CHANNEL, tokenizer, InputMode.FILE)


def is_in_s3(path: str | None) -> bool:
    return path is not None and path.startswith("s3://")


def _channel(name: str, uri: str, mode: InputMode) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    channel: dict[str, Any] = {"DataSource": {"S3DataSource": source}, "ChannelName": name}
    if mode is not InputMode.FILE:
        channel["InputMode"] = mode.value
    return channel
