"""What the parts of a parent share while it runs."""

from pathlib import Path
from typing import NamedTuple

from traindyno.parent.document import JobOrder
from traindyno.parent.host import Host
from traindyno.parent.journal import Journal
from traindyno.parent.launch import Launcher
from traindyno.parent.leftovers import Devices
from traindyno.parent.peers import Peers
from traindyno.parent.stop_request import StopRequest
from traindyno.parent.time_left import TimeLeft


class Attempt(NamedTuple):
    """``number`` is new for each start of a parent, and the same on all hosts.

    ``own_folder``: temporary files and caches of the run in progress. Its path stays, because processes that fork read
    it once.
    """

    number: str
    job: JobOrder
    host: Host
    peers: Peers
    journal: Journal
    devices: Devices
    launcher: Launcher
    stop: StopRequest
    time_left: TimeLeft
    own_folder: Path
