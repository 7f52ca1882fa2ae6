"""Instance types: devices, memory, peak FLOPS and network."""
