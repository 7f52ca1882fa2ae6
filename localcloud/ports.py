"""Ports of this machine that only its own programs reach."""

import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """The port is free now; another program may take it before it is used."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
