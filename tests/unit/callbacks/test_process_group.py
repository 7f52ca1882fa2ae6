"""Which library formed a group; libraries that are absent here are played by their published
calls.
"""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from traindyno.callbacks.process import SIZES, find_process_group, require_process_group

STARTED: dict[str, Any] = {
    "torch.distributed": SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 4
    ),
    "torch_xla.runtime": SimpleNamespace(world_size=lambda: 4),
    "smdistributed.modelparallel.torch": SimpleNamespace(size=lambda: 4),
    "smdistributed.dataparallel.torch.distributed": SimpleNamespace(get_world_size=lambda: 4),
    "horovod.torch": SimpleNamespace(size=lambda: 4),
    "mpi4py.MPI": SimpleNamespace(
        Is_initialized=lambda: True, COMM_WORLD=SimpleNamespace(Get_size=lambda: 4)
    ),
}


def _unstarted() -> int:
    raise RuntimeError("not started")


ALONE: dict[str, Any] = {
    "torch.distributed": SimpleNamespace(is_available=lambda: True, is_initialized=lambda: False),
    "torch_xla.runtime": SimpleNamespace(world_size=lambda: 1),
    "smdistributed.modelparallel.torch": SimpleNamespace(size=_unstarted),
    "smdistributed.dataparallel.torch.distributed": SimpleNamespace(get_world_size=_unstarted),
    "horovod.torch": SimpleNamespace(size=_unstarted),
    "mpi4py.MPI": SimpleNamespace(Is_initialized=lambda: False),
}


def test_each_library_has_a_case() -> None:
    assert STARTED.keys() == ALONE.keys() == SIZES.keys()


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    # A test before this one in the process may have left Accelerate's state behind.
    for name in (*SIZES, "accelerate.state"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_a_group_is_found_by_the_library_forming_it(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert find_process_group() is None
    monkeypatch.setitem(sys.modules, name, STARTED[name])
    assert find_process_group() == (name, 4)
    assert require_process_group(4) == {"process_group": name, "process_group_size": 4}


def test_imported_libraries_alone_form_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in ALONE.items():
        monkeypatch.setitem(sys.modules, name, module)
    assert find_process_group() is None
    with pytest.raises(
        RuntimeError, match="8 processes were started, but this one has no process group"
    ):
        require_process_group(8)
