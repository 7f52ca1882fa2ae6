"""Peak memory of one device, estimated without devices: the run's own code on fake tensors over a fake process group."""
