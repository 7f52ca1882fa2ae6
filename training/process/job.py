"""The container's folders, as SageMaker names them in the environment."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from traindyno.core.run.saved_model import (
    ADAPTER_FILE,
    BASE_CHANNEL,
    BASE_FIELD,
    TOKENIZER_FILE,
)
from traindyno.core.run.workload import Workload
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.choices import InputMode
from training.errors import WorkloadError


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPaths:
    """Where a job's data and models are.

    The paths of model and tokenizer are None if the workload names none.
    """

    #: A folder, an S3 prefix to stream from, or None for a dataset on the Hub.
    data_root: Path | str | None
    #: The model, or the base of an adapter that training goes on from.
    model_path: str | None
    tokenizer_path: str | None
    save_folder: Path
    #: The folder of the adapter that training goes on from.
    adapter: Path | None = None
    #: The file of the chat template, if the workload names a file.
    chat_template: Path | None = None


def find_job(workload: Workload, environment: Mapping[str, str] = os.environ) -> JobPaths:
    model = workload.model.path if workload.model else None
    tokenizer = workload.tokenizer.path if workload.tokenizer else None
    model_channel = environment.get("SM_CHANNEL_MODEL")
    tokenizer_channel = environment.get("SM_CHANNEL_TOKENIZER", model_channel)
    paths = JobPaths(
        data_root=_data_root(workload, environment),
        model_path=model_channel if is_s3_uri(model) else model,
        tokenizer_path=tokenizer_channel if is_s3_uri(tokenizer) else tokenizer,
        save_folder=Path(environment.get("SM_MODEL_DIR", "/opt/ml/model")),
        chat_template=_chat_template(workload, environment),
    )
    folder = Path(paths.model_path or "")
    if paths.model_path is None or not (folder / ADAPTER_FILE).exists():
        return paths
    has_tokenizer = paths.tokenizer_path is None and (folder / TOKENIZER_FILE).exists()
    return replace(
        paths,
        adapter=folder,
        model_path=_base_of(folder, environment),
        tokenizer_path=str(folder) if has_tokenizer else paths.tokenizer_path,
    )


def _base_of(folder: Path, environment: Mapping[str, str]) -> str:
    """The channel of the base, the folder that the adapter names, or its Hub id."""
    channel = environment.get(f"SM_CHANNEL_{BASE_CHANNEL.upper()}")
    named: str | None = json.loads((folder / ADAPTER_FILE).read_text()).get(BASE_FIELD)
    base = channel or named
    if not base or is_s3_uri(base):
        raise WorkloadError(
            f"the adapter in {folder} names {named or 'no model'} as its base; expected the folder "
            "or the S3 prefix of its base in workload.channels.base"
        )
    return base


def _chat_template(workload: Workload, environment: Mapping[str, str]) -> Path | None:
    """The one file of its channel, or of this machine; else the name is the tokenizer's."""
    named = workload.dataset.chat_template if workload.dataset else None
    if named is None:
        return None
    channel = environment.get("SM_CHANNEL_CHAT_TEMPLATE")
    if channel is not None:
        return next(path for path in sorted(Path(channel).iterdir()) if path.is_file())
    return Path(named) if Path(named).is_file() else None


def _data_root(workload: Workload, environment: Mapping[str, str]) -> Path | str | None:
    dataset = workload.dataset
    if dataset is not None and dataset.input_mode is InputMode.STREAM:
        return dataset.path
    channel = environment.get("SM_CHANNEL_TRAIN")
    if channel is not None:
        return Path(channel)
    path = workload.dataset.path if workload.dataset else None
    return Path(path) if path is not None and Path(path).exists() else None
