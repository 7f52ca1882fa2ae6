"""Training scripts as users write them, run by the tests in processes of their own."""
