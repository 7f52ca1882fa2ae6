"""Decides which requests the servers of a local cloud answer.

They answer programs that have its access key.

Every user of the machine can connect to a port of 127.0.0.1, and whoever is answered there runs
code as the person who started the local cloud.
"""

import hmac
import re
from collections.abc import Callable, Iterable
from urllib.parse import parse_qs

from localcloud.ports import LOOPBACK

LOOPBACK_NAMES = frozenset({LOOPBACK, "localhost"})
ERROR = "AccessDeniedException"
SIGNED = re.compile(r"AWS4-HMAC-SHA256 +Credential=([^/, ]+)")
# The parameters of presigned URLs: signature versions 4 and 2. Only the first of them is
# "key/date/region/service/…".
PRESIGNED = ("X-Amz-Credential", "AWSAccessKeyId")
ADVICE = 'only its owner may use it, and gets the key with: eval "$(traindyno local env)"'
ReadHeader = Callable[[str], str | None]


def find_refusal(header: ReadHeader, query: str, keys: Iterable[str]) -> str | None:
    """The reason why a request is refused; None if a program that has one of the ``keys`` sent it.

    ``header`` reads a header by its name in lower case, ``query`` is the URL's part after the
    question mark.
    """
    return find_page(header) or find_stranger(header, query, keys)


def find_page(header: ReadHeader) -> str | None:
    """The reason why the request of a web page is refused; None for other requests.

    A browser names the page's origin, or states that the request is cross-site. A page whose host
    name resolves to this address (DNS rebinding) is recognised by the Host header.
    """
    host = header("host") or ""
    if (host.rpartition(":")[0] or host) not in LOOPBACK_NAMES:
        return f"host {host!r}: the local cloud answers {' and '.join(sorted(LOOPBACK_NAMES))} only"
    origin = header("origin")
    if origin is not None:
        return f"origin {origin!r}: the local cloud refuses requests from web pages"
    if header("sec-fetch-site") not in {None, "none", "same-origin"}:
        return "the local cloud refuses requests from web pages of other sites"
    return None


def find_stranger(header: ReadHeader, query: str, keys: Iterable[str]) -> str | None:
    """The reason why a request is refused that names no access key of the local cloud."""
    named = named_key(header("authorization") or "", query)
    if named is None:
        return f"the request names no access key of this local cloud: {ADVICE}"
    # Each comparison takes the same time wherever the two differ; an empty key would open a server
    # that was given none.
    matches = [hmac.compare_digest(named.encode(), key.encode()) for key in keys if key]
    return (
        None
        if any(matches)
        else f"the request's access key is not that of this local cloud: {ADVICE}"
    )


def named_key(authorization: str, query: str) -> str | None:
    """The access key ID that a request is signed with, in its header or in a presigned URL."""
    signed = SIGNED.match(authorization)
    if signed:
        return signed[1]
    parameters = parse_qs(query)
    return next(
        (parameters[name][0].partition("/")[0] for name in PRESIGNED if name in parameters), None
    )


def authorization(access_key_id: str) -> dict[str, str]:
    """The header with which a program without an AWS client passes the gate: no server checks the
    signature.
    """
    return {"Authorization": f"AWS4-HMAC-SHA256 Credential={access_key_id}/"}
