"""Class labels as numbers from 0."""

from training.errors import WorkloadError


class LabelCodes:
    """Integers are kept and checked; other values are numbered as they first appear."""

    def __init__(self, label_count: int | None, column: str) -> None:
        self._label_count = label_count
        self._column = column
        self._codes: dict[str, int] = {}
        self._rows = 0

    def code(self, label: object) -> int:
        self._rows += 1
        if isinstance(label, bool):
            return int(label)
        code = label if isinstance(label, int) else self._numbered(label)
        limit = self._label_count
        if code < 0 or (limit is not None and code >= limit):
            accepted = "a number from 0 up" if limit is None else f"{limit} labels, numbered 0 to {limit - 1}"
            raise WorkloadError(f"row {self._rows} has {label!r} in column {self._column!r}; expected {accepted}")
        return code

    def _numbered(self, label: object) -> int:
        if label is None:
            raise WorkloadError(f"row {self._rows} has no value in column {self._column!r}; expected a label")
        return self._codes.setdefault(str(label), len(self._codes))
