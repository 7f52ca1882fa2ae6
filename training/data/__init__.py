"""From files or a Hub dataset to batches of token tensors."""
