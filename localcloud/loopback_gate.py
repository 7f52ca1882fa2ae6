"""Distinguishes requests of this machine's programs from requests of a web page in its browser."""

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost"})


def refuse(*, host: str, origin: str | None, fetch_site: str | None) -> str | None:
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
