"""The models that runs saved, as endpoints: the commands, and what runs and reports say of it."""
