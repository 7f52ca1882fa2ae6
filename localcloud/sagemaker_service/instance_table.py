"""The local instance types, and this machine's resources of each."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path

from traindyno.core.documents.problems import shown
from traindyno.core.instances.instance_types import LOCAL_PREFIX

LOCAL_CPU = "local.cpu"
LOCAL_GPU = "local.gpu"
LOCAL_TYPES = frozenset({LOCAL_CPU, LOCAL_GPU})
EXPECTED = 'a JSON file such as {"ml.p4d.24xlarge": "37.69"}'


def is_local(instance_type: str) -> bool:
    return instance_type.startswith(LOCAL_PREFIX)


def count_gpus() -> int:
    """The GPUs that nvidia-smi lists, as the training toolkit counts them; 0 without nvidia-smi."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return 0
    listed = subprocess.run(
        [command, "--list-gpus"], capture_output=True, text=True, check=False, timeout=30
    )
    return listed.stdout.count("GPU ") if listed.returncode == 0 else 0


def usable_cores() -> tuple[int, ...]:
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


class PricesInvalid(Exception):
    """The file has no prices."""


def read_given_prices(path: Path | str) -> dict[str, Decimal]:
    """Raises PricesInvalid."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise PricesInvalid(f"{path} can't be read ({error}), expected {EXPECTED}") from error
    if not isinstance(document, Mapping) or not document:
        raise PricesInvalid(f"{path}: got {shown(document)}, expected {EXPECTED}")
    return {name: _price(path, name, value) for name, value in document.items()}


def _price(path: Path | str, name: str, value: object) -> Decimal:
    try:
        usd_per_hour = Decimal(str(value))
    except InvalidOperation:
        usd_per_hour = Decimal("nan")
    if not usd_per_hour.is_finite() or usd_per_hour <= 0:
        raise PricesInvalid(f"{path}: {name}: got {shown(value)}, expected USD per hour above 0")
    return usd_per_hour
