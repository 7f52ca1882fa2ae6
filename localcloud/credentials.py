"""The access key of a local cloud: made with its home, and needed in every request to it."""

import os
import secrets
from dataclasses import asdict

from localcloud.home import HOME_VARIABLE, Credentials, Home, HomeUnusable

FILE = "credentials"
KEY_BYTES = 20


def make_access_key(home: Home) -> bool:
    """True if the home had none."""
    if _stored(home):
        return False
    made = Credentials(access_key_id=f"LOCAL{secrets.token_hex(KEY_BYTES).upper()}")
    home.write(FILE, asdict(made))
    return True


def read_access_key(home: Home) -> str:
    """Not from a file of another user: requests would go to the local cloud of that user."""
    found, path = _stored(home), home.document(FILE)
    if found and path.stat().st_uid != os.geteuid():
        raise HomeUnusable(
            f"{path} belongs to user {path.stat().st_uid}, and this is user {os.geteuid()}: set {HOME_VARIABLE} to a "
            "folder of your own"
        )
    if not found:
        raise HomeUnusable(
            f"the local cloud in {home.folder} has no access key, which every request to it needs; make one with: "
            "traindyno local up"
        )
    return found


def _stored(home: Home) -> str | None:
    found = home.read_as(FILE, Credentials)
    return found.access_key_id if found else None
