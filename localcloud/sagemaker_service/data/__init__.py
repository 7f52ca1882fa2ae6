"""Tables of the local service, each with its source."""
