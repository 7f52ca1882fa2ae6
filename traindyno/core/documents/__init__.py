"""Strict reading and writing of documents, with every problem named at its path."""
