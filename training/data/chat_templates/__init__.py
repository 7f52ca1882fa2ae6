"""Chat templates with marks around the answers, and the digests of the models' own templates that
they stand for.

They are those of TRL 1.16.0 (huggingface/trl), unchanged, with its licence in the file LICENSE.
"""
