"""Runs a strategy in one process as in a job of many, with fake tensors and a fake process group.

Tensors have any shape [...].
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import torch
from torch import distributed, nn
from torch._C._distributed_c10d import GradBucket
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.distributed.device_mesh import DeviceMesh
from torch.nn import parallel
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

from training.models.blueprint import replaced
from training.models.four_bits import import_bitsandbytes
from training.process.process_group import Topology

# These compute with the numbers of the ranks, and fake tensors have no values.
RANK_ARITHMETIC = (
    "__init__",
    "__getitem__",
    "get_group",
    "_get_all_submeshes",
    "_flatten",
    "_unflatten",
)
REDUCER = torch._C._distributed_c10d.Reducer


@contextmanager
def fake_process_group(topology: Topology) -> Iterator[None]:
    """Simulates the job's other processes in a process group.

    Raises RuntimeError in a process that already has one.
    """
    distributed.init_process_group(
        "fake", rank=topology.rank, world_size=topology.world_size, store=FakeStore()
    )
    try:
        with replaced(
            DistributedDataParallel, "__init__", _without_answer(DistributedDataParallel.__init__)
        ):
            yield
    finally:
        distributed.destroy_process_group()


@contextmanager
def fake_tensors(*, of_4_bits: bool) -> Iterator[FakeTensorMode]:
    """Tensors made inside have shapes and no values; reading one as a number gives 0.

    Those made before keep theirs. ``of_4_bits``: frozen weights may be, by bitsandbytes.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with ExitStack() as stack:
        for name in RANK_ARITHMETIC:
            if name in vars(DeviceMesh):
                stack.enter_context(
                    replaced(DeviceMesh, name, _on_real_tensors(getattr(DeviceMesh, name)))
                )
        # The model is made on its device, and fake parameters can't be replaced by themselves.
        stack.enter_context(replaced(nn.Module, "to", lambda module, *_, **__: module))
        # DistributedDataParallel compares shapes between processes before it starts, and reads the
        # answer.
        verify = "_verify_param_shape_across_processes"
        stack.enter_context(replaced(parallel.distributed, verify, lambda *_, **__: None))
        products = torch._meta_registrations
        name = "_meta_grouped_mm_common"
        stack.enter_context(replaced(products, name, _of_any_type(getattr(products, name))))
        if of_4_bits:
            made = import_bitsandbytes().nn.Params4bit
            stack.enter_context(replaced(made, "__new__", _parameter_of_4_bits))
        # In its second step it orders the buckets anew, by numbers that it reads from tensors.
        stack.enter_context(replaced(REDUCER, "_rebuild_buckets", lambda _: False))
        stack.enter_context(mode)
        stack.enter_context(_Numbers())  # type: ignore[no-untyped-call]
        yield mode


class _Numbers(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Returns values for code that reads them from a fake tensor."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten._local_scalar_dense.default and isinstance(args[0], FakeTensor):
            return 0.0 if args[0].dtype.is_floating_point else 0
        return func(*args, **kwargs)


def _of_any_type(product: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The fake product of experts takes bf16 alone; devices take the other types too."""

    @wraps(product)
    def multiplied(
        mat_a: torch.Tensor, mat_b: torch.Tensor, *args: Any, **kwargs: Any
    ) -> torch.Tensor:
        made = product(mat_a.bfloat16(), mat_b.bfloat16(), *args, **{**kwargs, "out_dtype": None})
        return made.to(kwargs.get("out_dtype") or mat_a.dtype)

    return multiplied


def _without_answer(begin: Callable[..., None]) -> Callable[..., None]:
    """DistributedDataParallel reads the result of its all-reduce, which a fake process group does
    not have.
    """

    @wraps(begin)
    def initialise(wrapper: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
        begin(wrapper, *args, **kwargs)
        wrapper.register_comm_hook(None, _unreduced)

    return initialise


def _unreduced(_state: None, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    reduced: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    reduced.set_result(bucket.buffer())
    return reduced


def _parameter_of_4_bits(_kind: type, data: torch.Tensor, **own: Any) -> nn.Parameter:
    """bitsandbytes' class can't hold a fake tensor: a parameter with the fields of that class."""
    parameter = nn.Parameter(data, requires_grad=False)
    fields = {"quant_state": None, "blocksize": 64, "bnb_quantized": False, **own}
    del fields["requires_grad"]
    for name, value in fields.items():
        setattr(parameter, name, value)
    return parameter


def _on_real_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        ranks = kwargs.get("_rank_map")
        with unset_fake_temporarily():
            if isinstance(ranks, FakeTensor):  # init_device_mesh counts the ranks from 0
                kwargs["_rank_map"] = torch.arange(ranks.numel(), dtype=torch.int)
            return method(*args, **kwargs)

    return called
