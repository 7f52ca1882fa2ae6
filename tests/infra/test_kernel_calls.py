"""Synthesis is a conversation with the CDK's process: its length is budgeted, because it is most of the time."""

from bench.synthesis import CALLS, kernel_calls


def test_synthesis_sends_few_messages_to_the_cdks_process() -> None:
    assert kernel_calls() <= CALLS
