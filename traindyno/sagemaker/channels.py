"""The input channels of a run: the parts of its workload in S3, and prepared tokens."""

from collections.abc import Iterator
from typing import Any

from traindyno.core.run.tokens import DataPreparation
from traindyno.core.run.workload import Dataset, Model, Tokenizer, Workload
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.checks.job_limits_check import (
    CHAT_TEMPLATE_CHANNEL,
    MODEL_CHANNEL,
    TOKENIZER_CHANNEL,
    TRAIN_CHANNEL,
)
from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.suite import Run

# The container's folder of all channels.
CONTAINER_CHANNELS = "/opt/ml/input/data"


def run_channels(run: Run, workload: Workload) -> list[dict[str, Any]]:
    """Prepared tokens replace the dataset and bring their tokenizer."""
    further = [channel(name, uri, InputMode.FILE) for name, uri in workload.channels.items()]
    tokenizer = None if run.tokens else _path(workload.tokenizer)
    pretrained = _pretrained_channels(_path(workload.model), tokenizer, model_mode=InputMode.FILE)
    templates = () if run.tokens else _template_channel(workload.dataset)
    return [*_dataset_channel(run, workload.dataset), *templates, *pretrained, *further]


def _template_channel(dataset: Dataset | None) -> Iterator[dict[str, Any]]:
    """Tokens bring the template in their tokenizer."""
    template = dataset.chat_template if dataset else None
    if is_s3_uri(template):
        yield channel(CHAT_TEMPLATE_CHANNEL, template, InputMode.FILE)


def _dataset_channel(run: Run, dataset: Dataset | None) -> Iterator[dict[str, Any]]:
    if dataset is None or dataset.input_mode is InputMode.STREAM:
        return
    uri = run.tokens.s3_uri if run.tokens else dataset.path
    if is_s3_uri(uri):
        yield channel(TRAIN_CHANNEL, uri, dataset.input_mode)


def preparation_channels(preparation: DataPreparation, workload: Workload) -> list[dict[str, Any]]:
    """The model, and for tokens the dataset and the tokenizer, if they are in S3.

    The files of dataset and model are not copied to the volume. A dataset's is read once, from its
    beginning, and not to its end if the runs need less; of the model the configuration, the
    tokenizer's files and the headers of the weights are read.
    """
    dataset = _path(workload.dataset)
    tokenizer = _path(workload.tokenizer)
    if preparation.stages_model:
        dataset = tokenizer = None
    channels = [channel(TRAIN_CHANNEL, dataset, InputMode.FAST_FILE)] if is_s3_uri(dataset) else []
    templates = () if preparation.stages_model else _template_channel(workload.dataset)
    return [
        *channels,
        *templates,
        *_pretrained_channels(_path(workload.model), tokenizer, model_mode=InputMode.FAST_FILE),
    ]


def _pretrained_channels(
    model: str | None, tokenizer: str | None, *, model_mode: InputMode
) -> Iterator[dict[str, Any]]:
    """A tokenizer uses the model's channel, unless a different model is in it."""
    if is_s3_uri(model):
        yield channel(MODEL_CHANNEL, model, model_mode)
    if is_s3_uri(tokenizer) and tokenizer != model:
        yield channel(
            TOKENIZER_CHANNEL if is_s3_uri(model) else MODEL_CHANNEL, tokenizer, InputMode.FILE
        )


def _path(source: Dataset | Model | Tokenizer | None) -> str | None:
    return source.path if source else None


def channel(name: str, uri: str, mode: InputMode) -> dict[str, Any]:
    """One entry of InputDataConfig."""
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    described: dict[str, Any] = {"DataSource": {"S3DataSource": source}, "ChannelName": name}
    if mode is not InputMode.FILE:
        described["InputMode"] = mode.value
    return described
