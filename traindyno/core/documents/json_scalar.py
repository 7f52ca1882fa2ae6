"""A JSON value that is neither a list nor a mapping."""

JsonScalar = str | int | float | bool
