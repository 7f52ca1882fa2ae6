"""Jobs as processes of this machine: container folders and environment, the toolkit, and the engine that runs them."""
