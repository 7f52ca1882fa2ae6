"""Programs of the images."""
