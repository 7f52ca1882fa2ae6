"""Rows of conversations in each of their forms, checked when they are read.

A row must have an answer, and turns with a role and a text.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from traindyno.core.run.workload import Dataset, Workload
from traindyno.core.suite.choices import DatasetFormat, Task
from training.data.checked_rows import SHOWN_CHARACTERS, described
from training.data.files import DataFile, DataRoot, files_format, find_files
from training.data.known_forms import ACCEPTED, chat_form, is_chat
from training.data.rows import file_objects, hub_objects
from training.errors import WorkloadError

ASSISTANT = "assistant"
#: A role as rows name it → as chat templates know it
ROLES = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "human": "user",
    ASSISTANT: ASSISTANT,
    "gpt": ASSISTANT,
    "tool": "tool",
    "function": "function",
    "observation": "tool",
}
#: Turns with one of these may have no text.
BESIDE_TEXT = ("tool_calls", "reasoning_content", "thinking")
#: Of answers that don't count, these are 0 or false.
OF_LOSS = ("weight", "train")
#: The results of tools may be empty.
OF_TOOLS = ("tool", "function")
KEYS = "role and content, or from and value"
#: Values of a column without content
NOTHING: tuple[Any, ...] = (None, "", [], {})
NO_VALUE = (*NOTHING, "[]")
#: Columns without which a row means something else; turns say what the first two say.
UNREAD = (
    "history",
    "system_prompt",
    "functions",
    "image",
    "images",
    "videos",
    "audios",
)

Turn = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a file."""

    file: str
    #: The number of the row in the file, from 1.
    number: int

    @property
    def place(self) -> str:
        return f"{self.file}, row {self.number}"

    def refused(self, problem: str) -> WorkloadError:
        return WorkloadError(f"{self.place}: {problem}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat(Row):
    """A conversation."""

    #: The turns as a chat template reads them.
    turns: Sequence[Turn]
    #: How many turns are a prompt, whose answers don't count; None if the row has no prompt.
    prompt_turns: int | None = None
    tools: list[dict[str, Any]] | None = None
    template_arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def texts(self) -> Iterator[str]:
        return (text for turn in self.turns for text in _texts_of(turn.get("content")))

    @property
    def functions(self) -> Iterator[str]:
        """The names of its tools, and of those that are called."""
        for tools in (self.tools or (), *(turn.get("tool_calls", ()) for turn in self.turns)):
            yield from (str(tool.get("function", tool).get("name", "")) for tool in tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptedText(Row):
    """A text and what follows it, without a chat template."""

    prompt: str
    completion: str

    @property
    def texts(self) -> Iterator[str]:
        yield self.prompt + self.completion


def has_chat(workload: Workload, files: Sequence[DataFile] | None) -> bool:
    """Whether the rows of ``files``, or those on the Hub if it is None, are conversations: the
    suite says so, or the first row where the suite leaves it open.
    """
    dataset = workload.dataset
    assert dataset is not None
    if dataset.format is DatasetFormat.CHAT:
        return True
    is_open = dataset.format in (DatasetFormat.AUTO, DatasetFormat.HUB)
    if not is_open or workload.task is not Task.CAUSAL_LM:
        return False
    if files is None:
        return _begins_with_chat(dataset, _numbered_of_hub(dataset, dataset.split))
    is_text = files_format(dataset, files) is DatasetFormat.TEXT
    return not is_text and _begins_with_chat(dataset, file_objects(dataset, files[:1]))


def conversations(
    dataset: Dataset, root: DataRoot | None, split: str
) -> Iterator[Chat | PromptedText]:
    """Reads from the folder or S3 prefix ``root``; without one, from the Hugging Face Hub."""
    if root is None:
        return parsed(_numbered_of_hub(dataset, split))
    return parsed(file_objects(dataset, find_files(dataset, root, split)))


def parsed(rows: Iterator[tuple[str, int, Any]]) -> Iterator[Chat | PromptedText]:
    """Each of ``rows`` with its file and number. Raises WorkloadError with both."""
    for file, number, values in rows:
        row = Row(file=file, number=number)
        if not isinstance(values, dict):
            raise row.refused(f"it is {described(values)}; expected an object")
        given = {name: value for name, value in values.items() if value is not None}
        try:
            chat = _parsed(row, given)
        except RecursionError as error:
            raise row.refused("it is nested too deep; expected turns with texts") from error
        yield chat


def _numbered_of_hub(dataset: Dataset, split: str) -> Iterator[tuple[str, int, Any]]:
    assert dataset.path is not None
    for number, values in enumerate(hub_objects(dataset, dataset.path, split, ()), start=1):
        yield dataset.path, number, values


def _begins_with_chat(dataset: Dataset, rows: Iterator[tuple[str, int, Any]]) -> bool:
    for _, _, values in itertools.islice(rows, 1):
        has_texts = not isinstance(values, dict) or dataset.text_column in values
        return not has_texts and chat_form(values) is not None
    return False


def _parsed(row: Row, values: Mapping[str, Any]) -> Chat | PromptedText:
    form = chat_form(values)
    if form is None:
        names = ", ".join(str(name)[:SHOWN_CHARACTERS] for name in values) or "none"
        raise row.refused(f"its columns with a value are {names}; expected {ACCEPTED}")
    first, *others = (
        _loaded(row, name, values[name])
        if len(form) == 1 or is_chat(values[name])
        else values[name]
        for name in form
    )
    system = _text(row, "system", values)
    tools = _functions(row, "tools", values)
    columns = UNREAD if len(form) == 2 else UNREAD[2:]
    unread = [name for name in columns if values.get(name) not in NO_VALUE]
    if unread:
        raise row.refused(
            f"it has a column {unread[0]}, which is not read; expected all turns in messages, as "
            "texts, and tools in tools"
        )
    if form == ("prompt", "completion") and isinstance(first, str):
        if system or tools:
            raise row.refused(
                f"it has {'a system text' if system else 'tools'}, and its prompt is a text, which "
                "no template joins with them; expected a prompt and a completion of turns"
            )
        return _completed(row, first, others[0])
    if form == ("instruction", "output"):
        turns = _instructed(row, first, others[0], values)
    else:
        turns = _turns(row, form[0], first)
    if system:
        turns = [{"role": "system", "content": system}, *turns]
    prompt_turns = None
    if form == ("prompt", "completion"):
        prompt_turns = len(turns)
        turns += _completion(row, others[0])
    _check_answers(row, turns[prompt_turns:])
    return Chat(
        file=row.file,
        number=row.number,
        turns=turns,
        prompt_turns=prompt_turns,
        tools=tools,
        template_arguments=_given(row, "chat_template_kwargs", values, dict) or {},
    )


def _instructed(row: Row, instruction: Any, output: Any, values: Mapping[str, Any]) -> list[Turn]:
    """The instruction with its input, which is text beside text, and its answer."""
    asked_of = _text(row, "input", values)
    if asked_of and not isinstance(instruction, str):
        raise row.refused(
            f"it has an input, and the instruction is {described(instruction)}; expected text"
        )
    if asked_of:
        instruction = f"{instruction}\n{asked_of}" if instruction.strip() else asked_of
    turns = [{"role": "user", "content": instruction}, {"role": ASSISTANT, "content": output}]
    return _turns(row, "instruction and output", turns)


def _completion(row: Row, value: Any) -> list[Turn]:
    turns = _turns(row, "completion", value)
    also = {turn["role"] for turn in turns} - {ASSISTANT}
    if also:
        raise row.refused(
            f"the completion has turns of {', '.join(sorted(also))}; expected turns of "
            f"{ASSISTANT} alone, or all turns in messages"
        )
    return turns


def _check_answers(row: Row, turns: Sequence[Turn]) -> None:
    answers = [turn for turn in turns if turn["role"] == ASSISTANT]
    if not answers:
        raise row.refused(f"the conversation has no turn of {ASSISTANT}; expected an answer")
    if any(answer.get(name, 1) != 1 for answer in answers for name in OF_LOSS):
        raise row.refused(
            f"a turn of {ASSISTANT} has another {' or '.join(OF_LOSS)} than 1, which is not read; "
            "expected answers that all count, or those that don't in prompt, before a completion"
        )


def _completed(row: Row, prompt: str, completion: object) -> PromptedText:
    for name, text in (("prompt", prompt), ("completion", completion)):
        if not isinstance(text, str) or not text.strip():
            raise row.refused(f"the {name} is {described(text)}; expected text")
    return PromptedText(file=row.file, number=row.number, prompt=prompt, completion=str(completion))


def _loaded(row: Row, name: str, value: Any) -> Any:
    """Returns the list that a text holds as JSON, or a value that is no text as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise row.refused(
            f"{name} is {described(value)}; expected a list of turns with {KEYS}, or its JSON: "
            f"{error}"
        ) from error


def _text(row: Row, name: str, values: Mapping[str, Any]) -> str:
    """The text in the column ``name``; empty for a blank one and without one."""
    value = values.get(name)
    if value in NOTHING:
        return ""
    if not isinstance(value, str):
        raise row.refused(f"{name} is {described(value)}; expected text")
    return value if value.strip() else ""


def _given(row: Row, name: str, values: Mapping[str, Any], kind: type) -> Any:
    """The list or the mapping in the column ``name``, also as JSON; None for an empty one."""
    value = values.get(name)
    try:
        content = (
            json.loads(value) if isinstance(value, str) and value.strip() else _without_none(value)
        )
    except ValueError as error:
        raise row.refused(f"{name} is text and no JSON: {error}") from error
    if content and not isinstance(content, kind):
        raise row.refused(f"{name} is {described(content)}; expected a {kind.__name__}")
    return content or None


def _functions(row: Row, name: str, values: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Tools or their calls, whose arguments OpenAI's rows have as JSON."""
    functions: list[dict[str, Any]] | None = _given(row, name, values, list)
    for tool in functions or ():
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(function, dict):
            raise row.refused(f"{name} has {described(tool)}; expected functions with a name")
        if "arguments" in function:
            function["arguments"] = _given(row, "arguments", function, dict) or {}
    return functions


def _turns(row: Row, name: str, value: Any) -> list[Turn]:
    if not isinstance(value, list) or not value:
        raise row.refused(f"{name} is {described(value)}; expected a list of turns with {KEYS}")
    return [_turn(row, number, turn) for number, turn in enumerate(value, start=1)]


def _turn(row: Row, number: int, value: Any) -> Turn:
    if not isinstance(value, dict):
        raise row.refused(f"turn {number} is {described(value)}; expected {KEYS}")
    turn = _without_none(value)
    for pair in (("role", "from"), ("content", "value")):
        if set(pair) <= turn.keys():
            raise row.refused(f"turn {number} has {' and '.join(pair)}; expected one of them")
    turn["tool_calls"] = _functions(row, "tool_calls", turn)
    named = turn.pop("from", turn.get("role"))
    role = ROLES.get(str(named).strip().casefold())
    if role is None:
        roles = ", ".join(ROLES)
        raise row.refused(f"turn {number} has the role {described(named)}; expected one of {roles}")
    content = turn.pop("value", turn.get("content"))
    if content is not None and not isinstance(content, str):
        _check_parts(row, number, content)
    has_text = any(text.strip() for text in _texts_of(content))
    if role not in OF_TOOLS and not (has_text or any(turn.get(name) for name in BESIDE_TEXT)):
        raise row.refused(f"turn {number}, of {role}, has no text; expected one")
    turn |= {"role": role, "content": content}
    return {name: inner for name, inner in turn.items() if inner is not None}


def _check_parts(row: Row, number: int, content: Any) -> None:
    parts = content if isinstance(content, list) else [content]
    for part in parts:
        kind = part.get("type", "text") if isinstance(part, dict) and part is not content else None
        if kind != "text" or not isinstance(part.get("text"), str):
            wrong = described(part if kind in (None, "text") else kind)
            raise row.refused(f"turn {number} has a part that is {wrong}; expected texts")


def _texts_of(content: Any) -> list[str]:
    """The texts of a checked content."""
    if content is None or isinstance(content, str):
        return [content or ""]
    return [part["text"] for part in content]


def _without_none(value: Any) -> Any:
    """Files with one schema for all rows, as Parquet, have None where a row has no such key."""
    if isinstance(value, dict):
        return {name: _without_none(inner) for name, inner in value.items() if inner is not None}
    return [_without_none(inner) for inner in value] if isinstance(value, list) else value
