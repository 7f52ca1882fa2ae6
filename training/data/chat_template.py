"""Renders a conversation by a chat template, with the places of its answers in the text.

A template is a program of somebody else: transformers runs it in Jinja's sandbox, and one call has
a limit of processor time. What it may use of memory has none.
"""

import itertools
import json
import re
import signal
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import TemplateError, TemplateRuntimeError, TemplateSyntaxError
from transformers import PreTrainedTokenizerBase
from transformers.utils.chat_template_utils import render_jinja_template

from traindyno.core.run.workload import Dataset
from traindyno.core.suite.choices import LossOn
from training.data.conversations import ASSISTANT, Chat, Turn
from training.errors import WorkloadError

#: Ten thousand turns take less than a second.
RENDER_SECONDS = 10.0
MARKS = re.compile(r"\{%-?\s*generation\s*-?%\}")
#: Errors that templates raise for conversations that they don't expect
REFUSALS = (
    TemplateError,
    TypeError,
    ValueError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
SHOWN_TEXT = 300
#: Arguments that each rendering has of its own
OWN_ARGUMENTS = frozenset(
    [
        "conversations",
        "messages",
        "tools",
        "chat_template",
        "return_assistant_tokens_mask",
        "add_generation_prompt",
    ]
)
PROBE = "qwzx"
ENDS = {"bos_token": "<s>", "eos_token": "</s>"}
EXPECTED = (
    "expected the tokenizer of a model that was trained on conversations, or "
    "workload.dataset.chat_template: FILE"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The text of a conversation."""

    text: str
    #: The places in the text where answers begin and end; None if all of it counts.
    answers: Sequence[tuple[int, int]] | None


def _render_template(**arguments: Any) -> Any:
    """The texts, and the marks of each. Raises TemplateRuntimeError after ``RENDER_SECONDS`` of
    processor time, and again after each more of them, since Jinja's compiler ignores errors. Only
    the main thread can be interrupted.
    """
    if threading.current_thread() is not threading.main_thread():
        return render_jinja_template(**arguments)
    before = signal.signal(signal.SIGVTALRM, _interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, RENDER_SECONDS, RENDER_SECONDS)
    try:
        return render_jinja_template(**arguments)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _interrupt(_signal: int, _frame: object) -> None:
    raise TemplateRuntimeError(f"it has not ended after {RENDER_SECONDS:g} s of processor time")


def read_template(file: Path) -> str:
    """The text of a file in UTF-8 without its byte order mark. Raises WorkloadError."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError):
            found = f"is not UTF-8 at byte {error.start}"
        else:
            found = f"can't be read: {error.strerror}"
        raise WorkloadError(
            f"the chat template {file.name} {found}; expected a file in UTF-8 with a template of "
            "Jinja"
        ) from error


def refuse_unless_template(text: str) -> None:
    """Raises WorkloadError for a text that is no template."""
    try:
        _render_template(conversations=[], chat_template=text)
    except TemplateSyntaxError as error:
        raise _syntax_error(error) from error


def choose_template(
    tokenizer: PreTrainedTokenizerBase, dataset: Dataset, file: Path | None
) -> None:
    """Gives ``tokenizer`` the template that the suite names.

    It is in ``file``, or has a name in the tokenizer's own dictionary. Raises WorkloadError for
    another name, and for a dictionary of which none is named.
    """
    asked = dataset.chat_template
    templates = tokenizer.chat_template
    if file is not None:
        tokenizer.chat_template = read_template(file)
    elif asked is not None:
        names = templates if isinstance(templates, dict) else {}
        if asked not in names:
            available = f"its templates are {', '.join(names)}" if names else "it has no names"
            raise WorkloadError(
                f"workload.dataset.chat_template: the tokenizer has no template {asked!r}: "
                f"{available}; expected one of them, or a file"
            )
        tokenizer.chat_template = names[asked]
    elif isinstance(templates, dict) and "default" not in templates:
        raise WorkloadError(
            f"the tokenizer has the chat templates {', '.join(templates)}; expected one of these "
            "names in workload.dataset.chat_template"
        )


class Templates:
    """Renders conversations by the templates of ``tokenizer``, of which one may be for tools.

    A row's own arguments take precedence over ``arguments``, which the suite gives.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        arguments: Mapping[str, Any],
        loss_on: LossOn,
    ) -> None:
        self._tokenizer = tokenizer
        self._arguments = {**tokenizer.special_tokens_map, **arguments}
        self._finds_answers = loss_on is LossOn.ANSWERS

    def render(self, chat: Chat) -> Rendered:
        """Raises WorkloadError, with file and row, for a conversation that the template refuses,
        and for one whose answers can't be found in its text.
        """
        template = self._template(chat)
        # A prompt's completion is what follows the prompt's text, by whichever template.
        by_marks = self._finds_answers and chat.prompt_turns is None
        if by_marks and not MARKS.search(template):
            template = training_template(template) or template
        turns = _in_form_of(template, chat.turns)
        if by_marks and not MARKS.search(template):
            return self._by_prefixes(chat, template, turns)
        text, marked = self._rendered(chat, template, turns, with_marks=by_marks)
        return Rendered(text=text, answers=marked if by_marks else None)

    def render_prompt(self, chat: Chat) -> str:
        """The prompt of a conversation that has one, up to where its completion begins."""
        template = self._template(chat)
        turns = _in_form_of(template, chat.turns[: chat.prompt_turns])
        return self._rendered(chat, template, turns, begins_answer=True)[0]

    def _template(self, chat: Chat) -> str:
        if not self._tokenizer.chat_template:
            raise WorkloadError(
                f"the tokenizer has no chat template, as that of a base model; {EXPECTED}"
            )
        return self._tokenizer.get_chat_template(tools=chat.tools)

    def _by_prefixes(self, chat: Chat, template: str, turns: Sequence[Turn]) -> Rendered:
        """An answer is what a text with it has more than the text before it, which asks for it."""
        whole, _ = self._rendered(chat, template, turns)
        answers = []
        for number, turn in enumerate(turns):
            if turn["role"] != ASSISTANT:
                continue
            before, _ = self._rendered(chat, template, turns[:number], begins_answer=True)
            after, _ = self._rendered(chat, template, turns[: number + 1])
            for part, beyond in ((before, after), (after, whole)):
                if not beyond.startswith(part):
                    raise chat.refused(_differs(number + 1, part, beyond))
            answers.append((len(before), len(after)))
        return Rendered(text=whole, answers=answers)

    def _rendered(
        self,
        chat: Chat,
        template: str,
        turns: Sequence[Turn],
        *,
        with_marks: bool = False,
        begins_answer: bool = False,
    ) -> tuple[str, list[tuple[int, int]]]:
        arguments = {**self._arguments, **chat.template_arguments}
        taken = OWN_ARGUMENTS.intersection(arguments)
        if taken:
            raise chat.refused(
                f"chat_template_kwargs has {', '.join(sorted(taken))}, which a template gets from "
                "the row; expected arguments of its own"
            )
        try:
            texts, marks = _render_template(
                conversations=[turns],
                tools=chat.tools,
                chat_template=template,
                return_assistant_tokens_mask=with_marks,
                add_generation_prompt=begins_answer,
                **arguments,
            )
        except TemplateSyntaxError as error:
            raise _syntax_error(error) from error
        except REFUSALS as error:
            roles = ", ".join(turn["role"] for turn in turns) or "none"
            reason = str(error) or type(error).__name__
            raise chat.refused(
                f"the chat template refuses the conversation: {reason}; its roles are {roles}"
            ) from error
        text: str = texts[0]
        return text, marks[0] if marks else []


def _syntax_error(error: TemplateSyntaxError) -> WorkloadError:
    return WorkloadError(
        f"the chat template has a syntax error in line {error.lineno}: {error.message}; expected a "
        "template of Jinja"
    )


@cache
def training_template(template: str) -> str | None:
    """The same template with marks around its answers, where TRL has one."""
    folder = files("training.data.chat_templates")
    originals: dict[str, str] = json.loads((folder / "originals.json").read_text(encoding="utf-8"))
    name = originals.get(sha256(template.encode()).hexdigest())
    return None if name is None else (folder / name).read_text(encoding="utf-8")


def common(first: Iterable[object], other: Iterable[object]) -> int:
    """The number of values with which both begin."""
    pairs = zip(first, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _differs(number: int, part: str, beyond: str) -> str:
    same = common(part, beyond)
    begin = max(0, same - SHOWN_TEXT // 3)
    return (
        f"the chat template writes what is before turn {number} or in it otherwise once more "
        "follows, so that its answer can't be found: "
        f"{part[begin : begin + SHOWN_TEXT]!r} becomes {beyond[begin : begin + SHOWN_TEXT]!r}; "
        "expected a template with {% generation %} marks around answers, or loss_on: all"
    )


def _in_form_of(template: str, turns: Sequence[Turn]) -> list[Turn]:
    """The turns with their contents as texts, or as parts, as ``template`` reads them."""
    texts, parts = _reads(template)
    changed = []
    for turn in turns:
        content = turn.get("content")
        if isinstance(content, list) and not parts:
            content = "\n".join(part["text"] for part in content)
        elif isinstance(content, str) and not texts:
            content = [{"type": "text", "text": content}]
        changed.append(turn if content is None else {**turn, "content": content})
    return changed


@cache
def _reads(template: str) -> tuple[bool, bool]:
    """Whether the template reads contents that are texts, and contents that are lists of parts.

    A template that refuses both for another reason reads texts.
    """
    texts = _is_written(template, PROBE)
    parts = _is_written(template, [{"type": "text", "text": PROBE}])
    return texts or not parts, parts


def _is_written(template: str, content: object) -> bool:
    turns = [{"role": "user", "content": content}]
    try:
        texts, _ = _render_template(conversations=[turns], chat_template=template, **ENDS)
    except REFUSALS:
        return False
    return PROBE in texts[0] and f"'{PROBE}'" not in texts[0] and f'"{PROBE}"' not in texts[0]
