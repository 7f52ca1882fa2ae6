"""The function, role and grants that serve a trained model."""
