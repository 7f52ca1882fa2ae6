"""Features apart, a folder each. ``traindyno/features.py`` alone imports them, and no slice imports
another: to take one out, delete its folder and its two lines there.
"""
