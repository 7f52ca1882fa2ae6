"""The cells of a suite that a side of a claim names by their settings."""

from collections.abc import Mapping

from traindyno.core.documents.stored import JsonScalar
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.suite_file import settings_document


def matches(cell: Cell, wanted: Mapping[str, JsonScalar]) -> bool:
    settings = settings_document(cell.settings)
    settings.update({f"hyperparameters.{name}": value for name, value in cell.hyperparameters.items()})
    return all(settings.get(name) == value for name, value in wanted.items())
