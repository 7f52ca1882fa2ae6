"""What a run does, as the lab writes it and its container reads it."""
