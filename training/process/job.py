"""The container's folders, as SageMaker names them in the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPaths:
    """``data_root`` is a folder, an S3 prefix to stream from, or None for a dataset on the Hub.

    The paths of model and tokenizer are None if the workload names none.
    """

    data_root: Path | str | None
    model_path: str | None
    tokenizer_path: str | None
    save_folder: Path


def find_job(workload: Workload, environment: Mapping[str, str] = os.environ) -> JobPaths:
    model = workload.model.path if workload.model else None
    tokenizer = workload.tokenizer.path if workload.tokenizer else None
    model_channel = environment.get("SM_CHANNEL_MODEL")
    tokenizer_channel = environment.get("SM_CHANNEL_TOKENIZER", model_channel)
    return JobPaths(
        data_root=_data_root(workload, environment),
        model_path=model_channel if is_s3_uri(model) else model,
        tokenizer_path=tokenizer_channel if is_s3_uri(tokenizer) else tokenizer,
        save_folder=Path(environment.get("SM_MODEL_DIR", "/opt/ml/model")),
    )


def _data_root(workload: Workload, environment: Mapping[str, str]) -> Path | str | None:
    dataset = workload.dataset
    if dataset is not None and dataset.input_mode is InputMode.STREAM:
        return dataset.path
    channel = environment.get("SM_CHANNEL_TRAIN")
    if channel is not None:
        return Path(channel)
    path = workload.dataset.path if workload.dataset else None
    return Path(path) if path is not None and Path(path).exists() else None
