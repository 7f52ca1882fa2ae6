"""AWS's distributed libraries, of which one is stood in for."""
