"""The folder of an adapter, as peft writes it, or merged into its model.

Tensors have any shape [...].
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import PreTrainedModel

from traindyno.core.run.saved_model import ADAPTER_FILE
from traindyno.core.run.settings import ALL_LINEAR, Adapter
from traindyno.core.suite.choices import Task
from training.errors import WorkloadError
from training.models.adapter import NAME, head_names, import_peft, lora_config, lora_layers
from training.models.saved_values import SavedTensor, find_files, read_header

WEIGHTS = "adapter_model.safetensors"
PREFIX = "base_model.model."  # of the names in peft's files
ORIGIN = "traindyno-adapter.json"
BASE = "base"
# The fields in which the configuration of other adapters than plain LoRA differs, with its values.
PLAIN: Mapping[str, Any] = {
    "peft_type": "LORA",
    "bias": "none",
    "rank_pattern": {},
    "alpha_pattern": {},
    **dict.fromkeys(("use_dora", "use_qalora", "use_rslora", "lora_bias"), False),
    **dict.fromkeys(
        (
            "alora_invocation_tokens",
            "arrow_config",
            "kasa_config",
            "layer_replication",
            "layers_to_transform",
            "monteclora_config",
            "trainable_token_indices",
            "use_bdlora",
            "velora_config",
        ),
        None,
    ),
}
# peft's initial values of an adapter that leave the base's weights as they are.
BESIDE_THE_BASE = ("true", "false", "gaussian", "eva", "orthogonal")
#: What peft names for any classifier, whichever of them its model has.
USUAL_HEADS = ("classifier", "score")


def digest_of(model_path: str, revision: str | None) -> int:
    """60 bits of the base's weights, without which an adapter means nothing."""
    digest = hashlib.sha256()
    for path in find_files(model_path, revision):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return int(digest.hexdigest()[:15], 16)


class AdaptedTensors:
    """Separates the tensors of an adapter from the tensors of its model.

    Once ``merged`` has been iterated, ``own`` has the trained tensors [...] by peft's names.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        """Takes the names of a model with the adapter, on the meta device."""
        self._model = model
        paths = [path for path, _ in lora_layers(model)]
        outermost = [
            path for path in paths if not any(path.startswith(f"{other}.") for other in paths)
        ]
        self._parts = {path: set(model.get_submodule(path).state_dict()) for path in outermost}
        self._heads = tuple(f"{name}." for name in head_names(model))
        self.own: dict[str, torch.Tensor] = {}

    def merged(
        self, tensors: Iterable[tuple[str, torch.Tensor]]
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """The merged model's tensors [...] by transformers' names, of the adapted model's.

        Beside one layer's there is no tensor in memory.
        """
        waiting: dict[str, dict[str, torch.Tensor]] = {}
        for name, tensor in tensors:
            path = self._layer_of(name)
            if ".lora_" in name or name.startswith(self._heads):
                self.own[f"{PREFIX}{name.replace(f'.{NAME}.', '.')}"] = tensor.contiguous()
            if path is None:
                yield name, tensor
                continue
            parts = waiting.setdefault(path, {})
            parts[name.removeprefix(f"{path}.")] = tensor
            del tensor
            if parts.keys() == self._parts[path]:
                yield from self._merge(path, waiting.pop(path))

    def _layer_of(self, name: str) -> str | None:
        parts = name.split(".")
        paths = (".".join(parts[:count]) for count in range(1, len(parts)))
        return next((path for path in paths if path in self._parts), None)

    def _merge(
        self, path: str, parts: Mapping[str, torch.Tensor]
    ) -> Iterator[tuple[str, torch.Tensor]]:
        layer = self._model.get_submodule(path)
        with torch.no_grad():
            for name, tensor in parts.items():
                owner, _, attribute = name.rpartition(".")
                value = nn.Parameter(tensor.clone(), requires_grad=False)
                layer.get_submodule(owner)._parameters[attribute] = value
            for _, inner in reversed([("", layer), *lora_layers(layer)]):
                if not inner.merged:
                    inner.merge()
            for name, tensor in layer.state_dict().items():
                if "lora_" not in name:
                    yield f"{path}.{name.replace('base_layer.', '')}", tensor
        layer.to_empty(device="meta")


def save_adapter(
    folder: Path,
    config: Any,
    tensors: Mapping[str, torch.Tensor],
    model: PreTrainedModel,
    *,
    base_name: str | None,
    base: str | None,
) -> None:
    """Writes what ``PeftModel.from_pretrained`` reads.

    Args:
        folder: The folder to write to, which is made if it is missing.
        config: peft's configuration of the adapter.
        tensors: [...], the trained tensors by peft's names.
        model: The adapted model, for the names of its head.
        base_name: The Hub id, the S3 URI or the path of the base.
        base: The digest of the base's files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = copy(config)
    written.base_model_name_or_path = base_name
    written.inference_mode = True
    targets = config.target_modules  # a text is an expression
    written.target_modules = targets if isinstance(targets, str) else sorted(targets)
    written.modules_to_save = head_names(model) or None
    written.save_pretrained(str(folder))
    save_file(dict(tensors), folder / WEIGHTS, metadata={"format": "pt"})
    if base is not None:
        (folder / ORIGIN).write_text(json.dumps({BASE: base}))


def check_base(folder: Path, base: str) -> None:
    """Raises WorkloadError unless the adapter was trained beside the base with this digest."""
    origin = folder / ORIGIN
    trained_beside = json.loads(origin.read_text())[BASE] if origin.exists() else base
    if trained_beside != base:
        raise WorkloadError(
            f"the adapter in {folder} was trained beside a base whose files have the digest "
            f"{trained_beside}, and the files of this base have {base}; expected the same base: "
            "its folder or S3 prefix in workload.channels.base"
        )


def read_adapter(
    folder: Path, model: PreTrainedModel, asked: Adapter, task: Task
) -> tuple[Any, dict[str, SavedTensor]]:
    """peft's configuration, and the values by the adapted model's names.

    Raises WorkloadError if it is not the adapter that is ``asked`` for, or not of this model.
    """
    stored = json.loads((folder / ADAPTER_FILE).read_text())
    _check_plain(folder, stored, head_names(model))
    _check_asked(folder, stored, asked)
    config = import_peft().PeftConfig.from_pretrained(str(folder))
    config.inference_mode = False
    config.lora_dropout = asked.dropout
    config.modules_to_save = None
    config.task_type = lora_config(model, Adapter(rank=1), task).task_type
    file = folder / WEIGHTS
    tensors: dict[str, SavedTensor] = {}
    for name in read_header(file) if file.exists() else ():
        adapted_name = name.removeprefix(PREFIX)
        for matrix in ("lora_A", "lora_B"):
            adapted_name = adapted_name.replace(f".{matrix}.weight", f".{matrix}.{NAME}.weight")
        tensors[adapted_name] = SavedTensor(file, name, torch.float32)
    if not tensors:
        raise WorkloadError(f"{folder} has no weights; expected {WEIGHTS}, as peft writes it")
    return config, tensors


def _check_plain(folder: Path, stored: Mapping[str, Any], heads: Sequence[str]) -> None:
    for name, plain in PLAIN.items():
        if stored.get(name, plain) != plain and not (stored.get(name) is None and not plain):
            raise WorkloadError(
                f"the adapter in {folder} has {name} {stored[name]}; expected plain LoRA, with "
                f"{name} {plain}"
            )
    began_with = stored.get("init_lora_weights", True)
    if str(began_with).lower() not in BESIDE_THE_BASE:
        raise WorkloadError(
            f"the adapter in {folder} began with init_lora_weights {began_with}, which changes the "
            "base's weights too; expected plain LoRA, as peft's save_pretrained writes it with "
            "path_initial_model_for_weight_conversion"
        )
    names = stored.get("modules_to_save") or ()
    others = [name for name in names if name not in (*heads, *USUAL_HEADS)]
    if others:
        raise WorkloadError(
            f"the adapter in {folder} trains {', '.join(others)} too; expected LoRA's weights and "
            "a classifier's head alone, or a merged model"
        )


def _check_asked(folder: Path, stored: Mapping[str, Any], asked: Adapter) -> None:
    requested = {"rank": asked.rank, "alpha": asked.alpha}
    for name, field in (("rank", "r"), ("alpha", "lora_alpha")):
        if requested[name] not in (None, stored.get(field)):
            raise WorkloadError(
                f"the adapter in {folder} has {name} {stored.get(field)}, and training.adapter has "
                f"{requested[name]}; expected {name}: {stored.get(field)}"
            )
    if asked.targets != (ALL_LINEAR,):
        raise WorkloadError(
            f"the adapter in {folder} has its targets; expected none in training.adapter"
        )
