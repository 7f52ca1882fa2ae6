"""BERT on Amazon Polarity, on Trainium by PyTorch/XLA 1.11 to 1.13 or on GPUs by DDP: transformers
4.21.
"""
