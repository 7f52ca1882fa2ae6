"""The form of a trained model's folder, beside its values.

Configuration and types are the stored model's, without what is set for a training.

Tensors have any shape [...].
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import GENERATION_CONFIG_NAME
from transformers.utils.hub import cached_file

from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import SaveDtype
from training.errors import explained
from training.models.config_numbers import text_of
from training.models.model import empty_model
from training.models.model_config import has_own_ends, load_config, model_config, name_labels
from training.models.saved_values import find_files, find_saved, read_header

HALVES = (torch.bfloat16, torch.float16)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedForm:
    """The form in which a model is saved."""

    #: A model on the meta device with the configuration and the types to save.
    model: PreTrainedModel
    #: The stored model's file, which is kept as it is; None if it has none.
    generation_config: Path | None = None

    @torch.no_grad()
    def round(self, held: Mapping[str, torch.Tensor]) -> bool:
        """Gives the ``held`` tensors [...], by transformers' names, the values to be saved.

        Returns whether any tensor of the model is rounded, the same on all ranks.
        """
        types = {
            name: tensor.dtype for name, tensor in self.model.state_dict(keep_vars=True).items()
        }
        for name, tensor in held.items():
            kind = types.get(name, tensor.dtype)
            if kind is not tensor.dtype:
                local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
                local.copy_(local.to(kind))
        return any(kind in HALVES for kind in types.values())


def saved_form(
    workload: Workload,
    tokenizer: PreTrainedTokenizerBase | None,
    save_dtype: SaveDtype,
    *,
    model_path: str | None,
    label_names: Sequence[str] = (),
) -> SavedForm:
    config = model_config(workload, tokenizer, model_path=model_path, is_trained=False)
    if label_names:
        name_labels(config, label_names)
    model = empty_model(workload.task, config)
    model.tie_weights()
    if model_path is None:
        return SavedForm(model=model)
    assert workload.model is not None
    revision = workload.model.revision
    with explained(f"the model {model_path}"):
        if save_dtype is SaveDtype.CHECKPOINT:
            _set_types(model, model_path, revision)
        stored = load_config(workload.model, model_path, runs_code=workload.trust_remote_code)
        generation = cached_file(
            model_path,
            GENERATION_CONFIG_NAME,
            revision=revision,
            _raise_exceptions_for_missing_entries=False,
        )
    if generation is None or not has_own_ends(stored, workload, tokenizer):
        return SavedForm(model=model, generation_config=None)
    return SavedForm(model=model, generation_config=Path(generation))


def _set_types(model: PreTrainedModel, model_path: str, revision: str | None) -> None:
    """A tensor gets the type that it is stored with; one that is not stored by its name the type of
    most stored values.
    """
    headers = {file: read_header(file) for file in find_files(model_path, revision)}
    sizes = Counter[torch.dtype]()
    for header in headers.values():
        for tensor in header.values():
            sizes[tensor.dtype] += tensor.numel()
    most = max(sizes, key=sizes.__getitem__)
    saved = find_saved(model, model_path, revision, renews_head=True) or {}
    for name, parameter in model.named_parameters():
        file, alias = saved.get(name, (None, ""))
        kind = most if file is None else headers[file][alias].dtype
        parameter.data = parameter.data.to(kind if kind in HALVES else torch.float32)
    for part in (model.config, text_of(model.config)):
        part.dtype = most if most in HALVES else torch.float32
