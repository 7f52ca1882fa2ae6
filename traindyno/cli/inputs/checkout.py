"""The functions of the CLI that need a checkout of the repository: the local cloud."""

from importlib.util import find_spec

import typer

from traindyno.core.errors import TraindynoError


class CheckoutNeeded(TraindynoError):
    """The command uses code that the installed package does not contain."""


def _has_local_cloud() -> bool:
    """Whether the checkout's code and the packages of the extra ``lab`` are installed."""
    return bool(find_spec("localcloud") and find_spec("psutil"))


def require_checkout(asked: str) -> None:
    """Raise ``CheckoutNeeded`` if the local cloud, which ``asked`` (a command or an option) uses, is not installed."""
    if not _has_local_cloud():
        raise CheckoutNeeded(
            f"{asked}: the local cloud is not installed; the wheel does not contain it: "
            "clone the repository, run `make install` there, and use its .venv/bin/traindyno"
        )


def add_local(commands: typer.Typer) -> None:
    """Add `traindyno local`; without a checkout, a command of that name that prints what is needed."""
    if _has_local_cloud():
        from traindyno.cli.commands import local_commands  # noqa: PLC0415  (imports localcloud, which the wheel lacks)

        commands.add_typer(local_commands.app, name="local")
        return

    @commands.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
    def local() -> None:
        """The cloud on this machine; needs a checkout of the repository."""
        require_checkout("traindyno local")
