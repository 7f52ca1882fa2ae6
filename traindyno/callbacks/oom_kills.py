"""The number of processes that the kernel killed because memory ran out."""

from pathlib import Path

CONTAINER = Path("/sys/fs/cgroup/memory.events")
MACHINE = Path("/proc/vmstat")


def count_oom_kills() -> int:
    """Counts for this container if it has its own memory limit, else for the machine; 0 if neither is known."""
    return max(_counter(CONTAINER), _counter(MACHINE))


def _counter(path: Path) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
