"""Synthesis is a conversation with the CDK's process, whose length is budgeted, and Python's work in between."""

from bench.synthesis import CALLS, kernel_calls, synthesise

COLLECTIONS = """
import gc, pathlib
def collections():
    return sum(generation["collections"] for generation in gc.get_stats())
before = collections()
exec(pathlib.Path("app.py").read_text())
print(collections() - before)
"""


def test_synthesis_sends_few_messages_to_the_cdks_process() -> None:
    assert kernel_calls() <= CALLS


def test_synthesis_searches_for_no_garbage() -> None:
    assert int(synthesise("-c", COLLECTIONS)) == 0
