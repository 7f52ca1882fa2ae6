"""Whether the unit tests notice when the core is wrong: `make mutants`."""
