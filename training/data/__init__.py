"""Makes batches of token tensors from files or a Hub dataset."""
