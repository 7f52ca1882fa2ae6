"""Where the parents of a job meet, and where the processes of a run do."""

import socket
from typing import Optional

from traindyno.core.jobs.journal_format import MASTER_ADDRESS_VARIABLE, MASTER_PORT_VARIABLE
from traindyno.parent.host import Host
from traindyno.parent.peers import Peers, join

# Beside 7777, which the toolkit names to scripts
PORT = 7776
LOOPBACK = "127.0.0.1"


def meet(host: Host, lease_seconds: float) -> Peers:
    port = int(host.environment.get(MASTER_PORT_VARIABLE, PORT))
    listener = _listen(host, port) if len(host.hosts) > 1 else None
    return join(
        host.rank,
        len(host.hosts),
        address=master_address(host),
        port=port,
        lease_seconds=lease_seconds,
        listener=listener,
    )


def master_address(host: Host) -> str:
    """The first host; with one host, loopback."""
    return host.environment.get(MASTER_ADDRESS_VARIABLE) or (host.hosts[0] if len(host.hosts) > 1 else LOOPBACK)


def free_port(host: Host) -> int:
    """A free port of the first host, for the processes of one run."""
    address = host.environment.get(MASTER_ADDRESS_VARIABLE, "")
    with socket.socket() as one:
        one.bind((address, 0))
        return int(one.getsockname()[1])


def _listen(host: Host, port: int) -> Optional[int]:
    """Where the hosts are one machine, the store listens at the given address only."""
    address = host.environment.get(MASTER_ADDRESS_VARIABLE)
    if not address or host.rank:
        return None
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen()
    return listener.detach()
