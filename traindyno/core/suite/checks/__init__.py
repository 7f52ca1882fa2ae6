"""The rules about a suite's content: each module yields the problems of one part."""
