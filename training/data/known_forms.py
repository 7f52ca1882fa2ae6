"""The forms of fine-tuning data that are known by the names of their columns; a built-in task
trains on one column of texts, which is only a part of each of them.
"""

import re
from collections.abc import Collection, Sequence

#: What the rows are → the columns that say so.
KNOWN_FORMS = (
    ("chats", ("messages",)),
    ("chats", ("conversations",)),
    ("preference pairs", ("chosen", "rejected")),
    ("prompts with their completions", ("prompt", "completion")),
    ("instructions with their answers", ("instruction", "output")),
    ("instructions with their answers", ("instruction", "response")),
    ("questions with their answers", ("question", "answer")),
)
#: A list of turns, written as JSON in a text.
CHAT_TEXT = re.compile(r'\s*\[\s*\{\s*"(role|from|content|value)"\s*:')
WAY = (
    "a built-in task trains on one column of texts: train them with a script, such as one of TRL "
    "(docs/own-script.md), or join each row to one text in a column of its own, and name it in "
    "workload.dataset.text_column"
)


def known_form(names: Collection[str]) -> str | None:
    """The sentence for data with these columns, or None."""
    for what, columns in KNOWN_FORMS:
        if set(columns) <= set(names):
            return f"the data has {what} ({', '.join(columns)}); {WAY}"
    return None


def is_chat(value: object) -> bool:
    """Whether it is a list of turns, or the JSON of one."""
    if isinstance(value, str):
        return CHAT_TEXT.match(value) is not None
    return (
        isinstance(value, Sequence)
        and bool(value)
        and all(isinstance(each, dict) for each in value)
    )
