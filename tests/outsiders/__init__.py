"""Models, data files and scripts as people have them: each with the right answer or the exact
message it must get.
"""
