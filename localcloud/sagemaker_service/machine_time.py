"""The clocks of this machine, and what disturbs them: a sleep, or a wall clock that is set."""

import time
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LEAST_MS = 1000
# Longer pauses between the readings of two clocks would look like a change of one of them.
LONGEST_READING_MS = 100


class Machine:
    @property
    def boot_id(self) -> str:
        """It changes when the machine starts; empty if the operating system has none."""
        return BOOT_ID.read_text(encoding="ascii").strip() if BOOT_ID.exists() else ""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds since a fixed moment of this boot. It stands still while the machine sleeps."""
        return time.monotonic_ns() // 1_000_000

    def boottime_ms(self) -> int:
        """The same with the time that the machine slept.

        Where the system has no such clock, as macOS, a sleep looks like a wall clock that moves forward.
        """
        if not hasattr(time, "CLOCK_BOOTTIME"):
            return self.monotonic_ms()
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


MACHINE = Machine()


class ClockWatch:
    """Finds sleeps and changes of the wall clock since the last look."""

    def __init__(self, machine: Machine = MACHINE) -> None:
        self._machine = machine
        self._before = self._differences()

    def look(self) -> str | None:
        """What happened, as a sentence; None if nothing did."""
        found = self._differences()
        if found is None:
            return None
        before, self._before = self._before or found, found
        slept_ms, set_ms = found[0] - before[0], found[1] - before[1]
        events = [f"The machine slept for {slept_ms / 1000:.0f} s."] if slept_ms >= LEAST_MS else []
        if abs(set_ms) >= LEAST_MS:
            direction = "forward" if set_ms > 0 else "back"
            events.append(f"The wall clock moved {direction} by {abs(set_ms) / 1000:.0f} s.")
        return f"{' '.join(events)} This changes no bill and no limit." if events else None

    def _differences(self) -> tuple[int, int] | None:
        """Of boot time and monotonic time, and of wall time and boot time; None if the readings took too long."""
        began = self._machine.boottime_ms()
        monotonic, wall = self._machine.monotonic_ms(), self._machine.wall_ms()
        ended = self._machine.boottime_ms()
        return None if ended - began > LONGEST_READING_MS else (ended - monotonic, wall - ended)
