"""Whether other work on the host slowed a run down, from the kernel's counters in the step log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindyno.core.measurement.change_points import LEAST_CHANGE
from traindyno.core.step_log.content import HostLoad, ProcessLog, Session

# A run that loses more than this share of its CPU time is contended: the share equals the tolerance between cells.
LARGEST_STEAL_SHARE = LEAST_CHANGE
LARGEST_FOREIGN_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Shares between 0 and 1, of the worst host while the session ran.

    ``steal_share``: CPU time that the hypervisor gave to others ÷ the host's capacity.
    ``foreign_share``: CPU time of processes outside the job ÷ the host's capacity.
    ``queue_share``: time for which the job's threads were ready and had no core ÷ (that + their CPU time).
    """

    steal_share: float
    foreign_share: float
    queue_share: float
    involuntary_switches_per_second: float

    @property
    def others_share(self) -> float:
        """The part of the host's capacity that other work took."""
        return self.steal_share + self.foreign_share

    @property
    def is_contended(self) -> bool:
        """Threads also wait if a job has more threads than cores, so waiting counts only together with foreign work."""
        waits_for_others = self.queue_share > LARGEST_FOREIGN_SHARE and self.foreign_share > LARGEST_FOREIGN_SHARE
        return self.steal_share > LARGEST_STEAL_SHARE or waits_for_others


def measure_contention(session: Session) -> Contention | None:
    """None if no process logged host loads (not Linux, a run shorter than a line's interval)."""
    hosts: dict[str, list[ProcessLog]] = {}
    for process in session.processes:
        if process.host_loads and process.environment is not None:
            hosts.setdefault(process.environment.host_id or process.environment.host, []).append(process)
    return _worst([_of_host(processes) for processes in hosts.values()])


def _worst(found: Sequence[Contention]) -> Contention | None:
    return max(found, key=lambda one: (one.is_contended, one.steal_share + one.queue_share), default=None)


def _of_host(processes: Sequence[ProcessLog]) -> Contention:
    """The host's own counters are the same in each of its processes, so they are read from one."""
    host = processes[0].host_loads
    seconds = sum(load.seconds for load in host)
    capacity = sum(load.seconds * load.host_cpu_count for load in host)
    own = sum(load.cpu_seconds for load in _loads(processes))
    waited = sum(load.run_queue_seconds for load in _loads(processes))
    busy = sum(load.host_busy_seconds for load in host)
    switches = sum(load.involuntary_switches for load in _loads(processes))
    return Contention(
        steal_share=sum(load.steal_seconds for load in host) / capacity,
        foreign_share=max(0.0, busy - own) / capacity,
        queue_share=waited / (waited + own) if waited + own else 0.0,
        involuntary_switches_per_second=switches / seconds,
    )


def _loads(processes: Sequence[ProcessLog]) -> Iterator[HostLoad]:
    return (load for process in processes for load in process.host_loads)
