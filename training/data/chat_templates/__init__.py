"""Chat templates with marks around the answers, in place of the models' own templates.

They are TRL's of version 1.16.0 (huggingface/trl), unchanged, with its licence in the file LICENSE.
The digests say for which template each of them stands.
"""
