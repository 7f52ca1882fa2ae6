"""How often MiniStack's state is saved: every five seconds, and less often only where saving would take the machine."""

import pytest

from localcloud.save_pause import pause_seconds


@pytest.mark.parametrize("save_seconds", [0.01, 0.6, 4.0])
def test_on_a_quiet_machine_the_state_is_saved_every_five_seconds(save_seconds: float) -> None:
    assert pause_seconds(save_seconds, load=1.9, cores=2) == 5.0


def test_on_a_busy_machine_saving_takes_a_twentieth_of_the_time() -> None:
    assert pause_seconds(0.6, load=2.0, cores=2) == 12.0
    assert pause_seconds(0.1, load=8.0, cores=2) == 5.0
