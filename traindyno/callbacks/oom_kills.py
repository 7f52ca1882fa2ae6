"""How many processes the kernel has killed because memory ran out."""

from pathlib import Path

CONTAINER = Path("/sys/fs/cgroup/memory.events")
MACHINE = Path("/proc/vmstat")


def count_oom_kills() -> int:
    """Of this container where it has a limit of its own, else of the machine; 0 where neither is known."""
    return max(_counter(CONTAINER), _counter(MACHINE))


def _counter(path: Path) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
