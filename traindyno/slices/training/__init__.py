"""From a verdict to the trained model: `traindyno train`."""
