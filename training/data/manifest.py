"""The manifest of a folder of tokens: the preparation job writes it, and each reader checks it."""

import json
from pathlib import Path

from traindyno.core.suite.preparation import TOKENS_MANIFEST, describe_mismatch, tokens_manifest
from training.data.sequences import EVALUATION, TRAIN, read_sequences
from training.errors import WorkloadError


def write_manifest(folder: Path, key: str) -> dict[str, dict[str, int]]:
    """Returns the manifest's entries for the folder's parts; there are none where the job only checked the model."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = _count(folder)
    (folder / TOKENS_MANIFEST).write_text(json.dumps(tokens_manifest(key, counts)))
    return counts


def check_manifest(folder: Path, key: str) -> None:
    """Checks that the folder contains the run's tokens, and all of them."""
    path = folder / TOKENS_MANIFEST
    manifest = json.loads(path.read_text()) if path.exists() else None
    problem = describe_mismatch(manifest, key=key)
    if problem is None and manifest is not None and manifest["parts"] != (found := _count(folder)):
        problem = f"it holds {found}; expected {manifest['parts']}, as its {TOKENS_MANIFEST} says"
    if problem:
        raise WorkloadError(f"the train channel {folder} does not bring the prepared data: {problem}")


def _count(folder: Path) -> dict[str, dict[str, int]]:
    parts = {name: read_sequences(folder / name) for name in (TRAIN, EVALUATION) if (folder / name).exists()}
    return {name: {"sequences": len(part), "tokens": len(part.tokens)} for name, part in parts.items()}
