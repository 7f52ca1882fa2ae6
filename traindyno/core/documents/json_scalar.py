"""A value that JSON has and that is neither a list nor a mapping."""

JsonScalar = str | int | float | bool
