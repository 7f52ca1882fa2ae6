"""The input channels of a job: what of its workload lies in S3."""

from typing import Any

from traindyno.core.suites.suite import InputMode, Workload

TRAIN_CHANNEL = "train"
MODEL_CHANNEL = "model"
TOKENIZER_CHANNEL = "tokenizer"


def build_channels(workload: Workload) -> list[dict[str, Any]]:
    """A tokenizer comes through the model's channel unless a different model is there already."""
    channels = []
    dataset = workload.dataset
    if dataset and is_in_s3(dataset.path) and dataset.input_mode is not InputMode.STREAM:
        channels.append(_channel(TRAIN_CHANNEL, str(dataset.path), dataset.input_mode))
    model = workload.model.path if workload.model else None
    tokenizer = workload.tokenizer.path if workload.tokenizer else None
    if is_in_s3(model):
        channels.append(_channel(MODEL_CHANNEL, str(model), InputMode.FILE))
    if is_in_s3(tokenizer) and tokenizer != model:
        name = TOKENIZER_CHANNEL if is_in_s3(model) else MODEL_CHANNEL
        channels.append(_channel(name, str(tokenizer), InputMode.FILE))
    channels += [_channel(name, uri, InputMode.FILE) for name, uri in workload.channels.items()]
    return channels


def is_in_s3(path: str | None) -> bool:
    return path is not None and path.startswith("s3://")


def _channel(name: str, uri: str, mode: InputMode) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    channel: dict[str, Any] = {"DataSource": {"S3DataSource": source}, "ChannelName": name}
    if mode is not InputMode.FILE:
        channel["InputMode"] = mode.value
    return channel
