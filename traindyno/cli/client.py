"""What a feature adds to the command line."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from traindyno.api.lab_target import LabTarget
from traindyno.core.errors import TraindynoError
from traindyno.lab.feature import Feature

# The function, and the example of its help.
Command = tuple[Callable[..., None], str]


@dataclass(frozen=True, kw_only=True)
class Client:
    """The commands of a feature, by name, and what it adds to other commands.

    ``before`` is the command that follows them in the help; ``refusals`` are its errors for input
    that is refused.
    """

    commands: Mapping[str, Command]
    before: str = "deploy"
    refusals: tuple[type[TraindynoError], ...] = ()

    def follow(self, target: LabTarget, execution: str, folder: Path) -> bool:
        """Follow an execution to its end; False if it is none of its own kind."""
        return False

    def leave(self, target: LabTarget, execution: str, folder: Path) -> None:
        """What ``report --output`` writes into the folder beside the page."""


def clients_of(features: Iterable[Feature]) -> list[Client]:
    return [
        cast("Client", import_module(f"traindyno.slices.{feature.client}").client())
        for feature in features
        if feature.client is not None
    ]
