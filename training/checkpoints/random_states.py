"""The states of this process's random number generators, as tensors of bytes [N] that a checkpoint can hold."""

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

PREFIX = "random"
LARGEST_SEED = 2**63


def random_states(rank: int) -> dict[str, torch.Tensor]:
    """Returns the states by name; each rank has its own names."""
    generator: Any = np.random.get_state(legacy=True)
    _, keys, *rest = generator
    states = {
        "torch": torch.get_rng_state(),
        "python": _from_text(random.getstate()),
        "numpy": _from_text([keys.tolist(), *rest]),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states["cuda"] = torch.cuda.get_rng_state()
    return {f"{PREFIX}.{rank}.{name}": state for name, state in states.items()}


def restore_random_states(states: Mapping[str, torch.Tensor], rank: int) -> None:
    own = {name.rpartition(".")[2]: state for name, state in states.items() if name.startswith(f"{PREFIX}.{rank}.")}
    torch.set_rng_state(own["torch"])
    random.setstate(_tuples(_to_value(own["python"])))
    keys, *rest = _to_value(own["numpy"])
    np.random.set_state(("MT19937", np.asarray(keys, dtype=np.uint32), *rest))
    if "cuda" in own and torch.cuda.is_available():
        torch.cuda.set_rng_state(own["cuda"])


def reseed(seed: int, step: int, data_rank: int) -> None:
    """Seed the generators if processes resume that are divided otherwise: those of one replica must draw the same."""
    (drawn,) = np.random.SeedSequence((seed, step, data_rank)).generate_state(1, np.uint64)
    torch.manual_seed(int(drawn) % LARGEST_SEED)
    random.seed(int(drawn))
    np.random.seed(int(drawn) % 2**32)


def _from_text(value: Any) -> torch.Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _to_value(text: torch.Tensor) -> Any:
    return json.loads(bytes(text.tolist()))


def _tuples(value: Any) -> Any:
    """The form that ``random.setstate`` needs: tuples, where JSON has lists."""
    return tuple(_parts(value)) if isinstance(value, list) else value


def _parts(values: list[Any]) -> Iterator[Any]:
    return (_tuples(value) for value in values)
