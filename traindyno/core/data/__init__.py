"""Tables of facts, each with its source; read through the modules that interpret them."""
