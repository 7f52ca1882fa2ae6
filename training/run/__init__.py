"""A training run from its first step to the model that it saves."""
