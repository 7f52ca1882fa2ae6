"""This machine's own address: its free ports, and which requests to it come from a program of this machine."""

import socket

LOOPBACK = "127.0.0.1"
LOOPBACK_NAMES = frozenset({LOOPBACK, "localhost"})


def free_port() -> int:
    """The port is free now; another program may take it before it is used."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def find_refusal(*, host: str, origin: str | None, fetch_site: str | None) -> str | None:
    """The reason why a request is refused; None if a program of this machine sent it.

    The arguments are header values. A browser names the page's origin, or states that the request is cross-site. A page
    whose host name resolves to this address (DNS rebinding) is recognised by the Host header.
    """
    if (host.rpartition(":")[0] or host) not in LOOPBACK_NAMES:
        return f"host {host!r}: the local cloud answers {' and '.join(sorted(LOOPBACK_NAMES))} only"
    if origin is not None:
        return f"origin {origin!r}: the local cloud refuses requests from web pages"
    if fetch_site not in {None, "none", "same-origin"}:
        return "the local cloud refuses requests from web pages of other sites"
    return None
