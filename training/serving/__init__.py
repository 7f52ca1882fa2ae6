"""What makes a trained model servable: the request handler, and samples with the expected
answers.
"""
