"""Saves the model of a run with an adapter, which belongs to one base.

Tensors have any shape [...].
"""

from collections import deque
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from traindyno.core.suite.choices import BaseWeights
from training.models.adapter import inject
from training.models.adapter_files import AdaptedTensors, check_base, digest_of, save_adapter
from training.models.blueprint import Blueprint
from training.process.job import JobPaths
from training.process.process_group import number_of_first_rank, read_topology
from training.process.run_settings import RunSettings
from training.run.saving import save_model

BASE = "base"  # in a checkpoint's identity
ADAPTER_FOLDER = "adapter"
DEQUANTISED = (
    "the adapter was trained beside weights of 4 bits: it is merged into their dequantised values, "
    "which differ from the base's own"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedForm:
    """The form in which a run's adapter is saved."""

    #: peft's configuration.
    config: Any
    base_name: str | None
    #: The digest of the base's files; None for a base without files.
    base: str | None
    is_merged: bool
    is_of_4_bits: bool = False

    @property
    def identity(self) -> dict[str, str]:
        """What a checkpoint says of the base that it lacks."""
        return {} if self.base is None else {BASE: self.base}


def adapted_form(run: RunSettings, blueprint: Blueprint, job: JobPaths) -> AdaptedForm | None:
    """The form of the run's adapter; None without one.

    Raises WorkloadError if the adapter belongs to another base.
    """
    if run.settings.adapter is None:
        return None
    config = blueprint.adapter
    own_name = run.workload.model.path if run.workload.model else None
    return AdaptedForm(
        config=config,
        base_name=config.base_model_name_or_path or own_name,
        base=_base_digest(run, job),
        is_merged=run.settings.adapter.merged,
        is_of_4_bits=run.settings.base_weights is BaseWeights.NF4,
    )


def save_adapted(
    adapted: AdaptedForm,
    tensors: Iterable[tuple[str, torch.Tensor]],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    folder: Path,
    *,
    generation_config: Path | None = None,
) -> None:
    """Saves the merged model as ``save_model`` does, and the adapter in a folder of its own; or the
    adapter alone, in ``folder``.
    """
    with_layers = inject(deepcopy(model), deepcopy(adapted.config))
    parts = AdaptedTensors(with_layers)
    merged = parts.merged(tensors)
    if adapted.is_merged:
        if adapted.is_of_4_bits:
            print(DEQUANTISED, flush=True)  # noqa: T201
        save_model(merged, model, tokenizer, folder, generation_config=generation_config)
        folder = folder / ADAPTER_FOLDER
    deque(merged, maxlen=0)
    save_adapter(
        folder,
        adapted.config,
        parts.own,
        with_layers,
        base_name=adapted.base_name,
        base=adapted.base,
    )
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)


def _base_digest(run: RunSettings, job: JobPaths) -> str | None:
    """The digest of the files of the base; None for a base without files.

    The first process alone reads them. Raises WorkloadError if the adapter belongs to another base.
    """
    if run.settings.adapter is None or job.model_path is None:
        return None
    assert run.workload.model is not None
    digest = (
        digest_of(job.model_path, run.workload.model.revision) if read_topology().is_first else 0
    )
    base = f"{number_of_first_rank(digest):x}"
    if job.adapter is not None:
        check_base(job.adapter, base)
    return base
