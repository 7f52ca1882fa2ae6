"""What makes a trained model servable."""
