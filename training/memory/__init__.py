"""Peak memory of one device, estimated without any: the run's own code on fake tensors."""
