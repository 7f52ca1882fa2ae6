"""Copies of the Hub's models, with the token that private models need.

A copy has the weights in one format, the configuration and the tokenizer.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, snapshot_download

from traindyno.core.run.workload import Workload
from training.errors import WorkloadError, explained, too_small_volume, volume_of

TOKEN_VARIABLE = "HF_TOKEN"
TOKEN_FIELDS = ("token", TOKEN_VARIABLE)
# The formats stand in order of preference, with weights in one file or in shards with an index.
# PyTorch's own is pickled.
WEIGHTS = (
    re.compile(r"model\.safetensors|model\.safetensors\.index\.json|model-\d+-of-\d+\.safetensors"),
    re.compile(r"pytorch_model\.bin|pytorch_model\.bin\.index\.json|pytorch_model-\d+-of-\d+\.bin"),
)
# Configuration and tokenizer are at the top. Nothing here is code or belongs to another framework's
# weights.
OTHERS = re.compile(r"[^/]+\.(json|txt|model|jinja)")
INDEX = re.compile(r".*\.index\.json")


def connect_secrets(region: str) -> Any:
    import boto3  # noqa: PLC0415  (only jobs with a secret need it; every image has it)

    return boto3.client("secretsmanager", region_name=region)


def use_hub_token(
    secret_arn: str | None,
    *,
    environment: MutableMapping[str, str] = os.environ,
    connect: Callable[[str], Any] = connect_secrets,
) -> None:
    """Sets the variable that huggingface_hub reads.

    Raises WorkloadError without repeating the secret.
    """
    if secret_arn is None or TOKEN_VARIABLE in environment:
        return
    try:
        text: str = connect(secret_arn.split(":")[3]).get_secret_value(SecretId=secret_arn)[
            "SecretString"
        ]
    except Exception as error:  # noqa: BLE001  (botocore may be missing here, so its errors can't be named)
        raise WorkloadError(
            f"the Hub token can't be read from {secret_arn}: {type(error).__name__}; expected a "
            "secret with text that the job's role may read: deploy the lab with it in -c "
            "hub_token_secrets"
        ) from None
    environment[TOKEN_VARIABLE] = _token_in(text, secret_arn)


def _token_in(text: str, secret_arn: str) -> str:
    """The secret is the token itself, or a JSON object that holds it."""
    stripped = text.strip()
    if not stripped.startswith("{"):
        return stripped
    fields: dict[str, Any] = json.loads(stripped)
    token = next((fields[name] for name in TOKEN_FIELDS if isinstance(fields.get(name), str)), None)
    if token is None:
        expected = " or ".join(TOKEN_FIELDS)
        raise WorkloadError(
            f"{secret_arn} holds a JSON object without the token; expected a text field {expected}"
        )
    return str(token)


def copy_model(workload: Workload, folder: Path) -> None:
    """Fills ``folder``.

    Large files are written as they arrive. If the volume is too small, raises WorkloadError before
    it loads one.
    """
    assert workload.model is not None
    path = str(workload.model.path)
    folder.mkdir(parents=True, exist_ok=True)
    with volume_of(f"the model {path}", folder), explained(f"the model {path}"):
        repository = HfApi().model_info(path, revision=workload.model.revision, files_metadata=True)
        names = needed_files(
            (file.rfilename for file in repository.siblings or ()),
            with_code=workload.trust_remote_code,
        )
        if not names:
            raise WorkloadError(
                f"the model {path} has no weights in safetensors or PyTorch's format; expected "
                "model.safetensors, pytorch_model.bin, or their shards with an index"
            )
        needed_bytes = sum(
            file.size or 0 for file in repository.siblings or () if file.rfilename in names
        )
        if needed_bytes > shutil.disk_usage(folder).free:
            raise too_small_volume(f"the model {path}", folder, needed_bytes=needed_bytes)
        snapshot_download(path, revision=repository.sha, allow_patterns=names, local_dir=folder)
    shutil.rmtree(folder / ".cache", ignore_errors=True)  # the download's own notes
    size = sum((folder / name).stat().st_size for name in names)
    contents = f"{len(names)} files, {size:,} bytes"
    print(f"model {path} at commit {repository.sha}: {contents}", flush=True)  # noqa: T201


def needed_files(names: Iterable[str], *, with_code: bool = False) -> list[str]:
    """The names to copy; none without readable weights.

    Pickled weights are copied where there are no others, and code only for a suite that allows it.
    """
    listed = sorted(names)
    by_format = (list(filter(kind.fullmatch, listed)) for kind in WEIGHTS)
    weights = next(filter(None, by_format), [])
    others = [name for name in listed if OTHERS.fullmatch(name) and not INDEX.fullmatch(name)]
    if with_code:
        others += [name for name in listed if name.endswith(".py")]
    return sorted({*weights, *others}) if weights else []
