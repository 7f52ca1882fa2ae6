"""The forms of fine-tuning data that are known by the names of their columns.

causal-lm trains on conversations; for other forms a script is needed.
"""

import re
from collections.abc import Collection, Sequence

#: The columns that say that rows are conversations.
CHAT_FORMS = (
    ("messages",),
    ("conversations",),
    ("prompt", "completion"),
    ("instruction", "output"),
)
ACCEPTED = (
    "messages, conversations (from and value), prompt and completion, or instruction and output "
    "(with input)"
)
#: The other kinds of rows, each with the columns that show it.
OTHER_FORMS = (
    ("preference pairs", ("chosen", "rejected")),
    ("completions that are wanted or not", ("prompt", "completion", "label")),
    ("instructions with their answers", ("instruction", "response")),
    ("questions with their answers", ("question", "answer")),
)
#: A list of turns, written as JSON in a text.
CHAT_TEXT = re.compile(r'\s*\[\s*\{\s*"(role|from|content|value)"\s*:')
WAY = "workload.task causal-lm with workload.dataset.format: chat trains on conversations"
SCRIPT_WAY = (
    "train them with a script, such as one of TRL (docs/own-script.md), or join each row to one "
    "text in a column of its own, and name it in workload.dataset.text_column"
)


def chat_form(names: Collection[str]) -> tuple[str, ...] | None:
    """The columns by which rows with these ones are conversations; preferences are none."""
    if any(set(columns) <= set(names) for _, columns in OTHER_FORMS[:2]):
        return None
    return next((columns for columns in CHAT_FORMS if set(columns) <= set(names)), None)


def known_form(names: Collection[str]) -> str | None:
    """The sentence for data with these columns, or None."""
    columns_of_chat = chat_form(names)
    if columns_of_chat is not None:
        return f"the data has conversations ({', '.join(columns_of_chat)}); {WAY}"
    for what, columns in OTHER_FORMS:
        if set(columns) <= set(names):
            asked = f"with conversations it reads {ACCEPTED}"
            return f"the data has {what} ({', '.join(columns)}); {asked}; {SCRIPT_WAY}"
    return None


def is_chat(value: object) -> bool:
    """Whether it is a list of turns, or the JSON of one."""
    if isinstance(value, str):
        return CHAT_TEXT.match(value) is not None
    return (
        isinstance(value, Sequence)
        and bool(value)
        and all(isinstance(turn, dict) for turn in value)
    )
