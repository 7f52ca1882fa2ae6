"""Runs a pipeline's stages in a process without neighbours: it gives the shapes that these would send first."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from training.models.replacement import replaced


class HiddenStates:
    """Shape and type of the tensors between stages: equal for all stages, and for the gradients. The first stage
    determines them, so the process that holds it must run first.
    """

    def __init__(self) -> None:
        self._metas: tuple[Any, ...] = ()

    @contextmanager
    def exchanged(self) -> Iterator[None]:
        """Stages that run inside send no shape, and receive the known one."""
        # Private names, which change between versions of PyTorch: only an estimate of a pipeline may need them.
        from torch.distributed.pipelining import PipelineStage  # noqa: PLC0415
        from torch.distributed.pipelining._utils import _StageBackwardMeta, _StageForwardMeta  # noqa: PLC0415
        from torch.distributed.tensor.debug import _clear_sharding_prop_cache  # noqa: PLC0415

        # PyTorch keeps how a mesh's tensors are divided, with the groups of the stage that ran before on an equal mesh.
        _clear_sharding_prop_cache()  # type: ignore[no-untyped-call]

        def send(_stage: Any, meta: Any, _dst_stage: int) -> None:
            if isinstance(meta, _StageForwardMeta):
                self._metas = meta.forward_metas

        def receive(stage: Any, src_stage: int) -> Any:
            if not self._metas:
                raise RuntimeError("no process with the first stage has run yet; expected it to run first")
            if src_stage < stage.stage_index:
                return _StageForwardMeta(forward_metas=self._metas)
            gradients = tuple(replace(meta, requires_grad=False) for meta in self._metas)
            return _StageBackwardMeta(backward_metas=gradients)

        with replaced(PipelineStage, "_send_meta", send), replaced(PipelineStage, "_recv_meta", receive):
            yield
