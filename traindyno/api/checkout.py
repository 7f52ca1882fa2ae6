"""Whether the local cloud is installed, which only a checkout of the repository has."""

from importlib.util import find_spec

from traindyno.core.errors import TraindynoError


class CheckoutNeeded(TraindynoError):
    """The command uses code that the installed package does not contain."""


def has_local_cloud() -> bool:
    """Whether the checkout's code and the packages of the extra ``lab`` are installed."""
    return bool(find_spec("localcloud") and find_spec("psutil"))


def require_checkout(asked: str) -> None:
    """Raise ``CheckoutNeeded`` if the local cloud, which ``asked`` (a command or an option) uses,
    is not installed.
    """
    if not has_local_cloud():
        raise CheckoutNeeded(
            f"{asked}: the local cloud is not installed; the wheel does not contain it: "
            "clone the repository, run `make install` there, and use its .venv/bin/traindyno"
        )
