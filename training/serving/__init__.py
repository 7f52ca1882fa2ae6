"""What makes a trained model servable: the request handler, and samples with the answers that it has to give."""
