"""PyTorch/XLA: a device that collects a step's operations in a graph, compiles it once and then
runs it.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import distributed, nn

from traindyno.callbacks import StepLogger
from traindyno.callbacks.clock import HostClock, now
from traindyno.callbacks.environment import peak_memory_bytes
from training.accelerators import Accelerator, CountedStep
from training.compilers import ModelCompiler
from training.errors import MissingFromImage
from training.process.process_group import Topology

COMPILE_METRIC = "CompileTime"
STEPS_AHEAD = 2


class XlaClock(HostClock):
    """A step is marked when it has been submitted; the host waits for the device once per
    window.
    """

    is_immediate = False

    def __init__(self, wait: Callable[[], None]) -> None:
        self._wait = wait

    def mark(self) -> float:
        return now()

    def resolve(self, marks: Any) -> list[float]:
        self._wait()
        return list(marks)


class Xla(Accelerator):
    averages_gradients = True
    name = "xla"

    def __init__(self) -> None:
        try:
            import torch_xla  # noqa: PLC0415  (only the environment of compiler xla has it)
            import torch_xla.core.xla_model as xm  # noqa: PLC0415
            from torch_xla.debug import metrics  # noqa: PLC0415
            from torch_xla.distributed import parallel_loader  # noqa: PLC0415
        except ImportError as error:
            raise MissingFromImage(
                f"compiler xla needs {error.name}, which this environment lacks ({error}; torch "
                f"{torch.__version__}); on a CPU, `make xla` in a checkout makes an environment; "
                "for Trainium, see images/neuron"
            ) from error
        self._xla = torch_xla
        self._model = xm
        self._metrics = metrics
        self._parallel_loader = parallel_loader
        self.device: torch.device = self._xla.device()
        self._is_host = self._model.xla_device_hw(self.device) == "CPU"
        # XLA's CPU device has no collectives between processes.
        self.process_group_backend = "gloo" if self._is_host else "cpu:gloo,xla:xla"
        self._compilation_count = 0
        self.step_log = StepLogger(None)
        if not self._is_host:
            import torch_xla.distributed.xla_backend  # noqa: PLC0415  (registers it)

    def make_clock(self) -> HostClock:
        return HostClock() if self._is_host else XlaClock(self._model.wait_device_ops)

    def load_ahead(self, steps: Iterable[CountedStep]) -> Iterator[CountedStep]:
        """Threads load and move the next steps while the device works on this one.

        MpDeviceLoader would make the same loader, which it can't close before its end. It takes an
        error of the data for the end of it: here the error travels as a step.
        """
        loader = self._parallel_loader.ParallelLoader(
            _with_error(steps),
            [self.device],
            batches_per_execution=sys.maxsize,  # only end_step runs the graph
            loader_prefetch_size=STEPS_AHEAD,
            device_prefetch_size=STEPS_AHEAD,
        )
        try:
            for step in loader.per_device_loader(self.device):
                if isinstance(step, Exception):
                    raise step
                yield step
        finally:
            loader.close()

    def peak_memory_bytes(self) -> int | None:
        if self._is_host:
            return peak_memory_bytes()
        peak: int | None = self._model.get_memory_info(self.device).get("peak_bytes_used")
        return peak

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        trained = [parameter for parameter in parameters if parameter.grad is not None]
        if self._is_host:
            self._average_on_host(trained)
        else:
            gradients = [parameter.grad for parameter in trained]
            self._model.all_reduce(
                self._model.REDUCE_SUM, gradients, scale=1.0 / distributed.get_world_size()
            )

    def _average_on_host(self, parameters: list[nn.Parameter]) -> None:
        """Averages in one message on the host: every process is one XLA device, without collectives
        to the others.
        """
        flat = torch.cat(
            [parameter.grad.reshape(-1) for parameter in parameters if parameter.grad is not None]
        )
        self._xla.sync()
        on_host = flat.cpu()
        distributed.all_reduce(on_host)
        on_host /= distributed.get_world_size()
        sizes = [parameter.numel() for parameter in parameters]
        for parameter, values in zip(
            parameters, torch.split_with_sizes(on_host.to(self.device), sizes), strict=True
        ):
            parameter.grad = values.view_as(parameter)

    def end_step(self) -> None:
        self._xla.sync()
        for begin, end in self._new_compilations():
            self.step_log.add_phase("compile", begin, end, {})

    def _new_compilations(self) -> list[tuple[float, float]]:
        """Returns begin and end, in epoch seconds, of each that PyTorch/XLA has done since the last
        call.
        """
        data = self._metrics.metric_data(COMPILE_METRIC)
        if data is None:
            return []
        count, _, samples = data
        new = count - self._compilation_count
        self._compilation_count = count
        return (
            [(end - nanoseconds / 1e9, end) for end, nanoseconds in samples[len(samples) - new :]]
            if new
            else []
        )


def _with_error(steps: Iterable[CountedStep]) -> Iterator[CountedStep | Exception]:
    try:
        yield from steps
    except Exception as error:  # noqa: BLE001  (raised again where the step is awaited)
        yield error


class XlaCompiler(ModelCompiler):
    """There is no wrapper around the model."""

    def __init__(self) -> None:
        self._accelerator = Xla()

    def accelerator(self, topology: Topology) -> Accelerator:
        return self._accelerator

    def log_compilations(self, step_log: StepLogger) -> None:
        self._accelerator.step_log = step_log
