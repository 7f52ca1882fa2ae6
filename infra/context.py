"""The app's context, read in one message to the CDK's process."""

from typing import Any

from constructs import Node


class Context:
    def __init__(self, node: Node) -> None:
        self._values: dict[str, Any] = node.get_all_context()

    def try_get_context(self, name: str) -> Any:
        return self._values.get(name)

    def get_context(self, name: str) -> Any:
        """Raises ValueError if the context lacks it."""
        if name not in self._values:
            raise ValueError(f"context {name} is missing; cdk.json has its default")
        return self._values[name]
