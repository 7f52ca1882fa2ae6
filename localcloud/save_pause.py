"""The pause between two saves of MiniStack's state: what changed after a save is lost if MiniStack is killed."""

LEAST_SECONDS = 5.0
# On a busy machine saving takes at most a twentieth of the time.
PAUSE_FACTOR = 20


def pause_seconds(save_seconds: float, *, load: float, cores: int) -> float:
    """``save_seconds``: the CPU time of the save. ``load``: the processes that want to run, averaged over a minute."""
    return LEAST_SECONDS if load < cores else max(LEAST_SECONDS, PAUSE_FACTOR * save_seconds)
