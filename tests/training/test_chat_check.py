"""A plan reads the conversations on this machine: it counts the long ones, and refuses what a job
would refuse, with file and row.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.chat_samples import ANSWER, CHATS, QUESTION, chat_tokenizer
from traindyno.api.plans import file_lines
from traindyno.api.suite_loading import Suite, check_startable
from traindyno.core.errors import SuiteInvalid

TEMPLATE = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def suite_of(folder: Path, rows: list[Any], *, template: str = TEMPLATE, **dataset: Any) -> Suite:
    (folder / "chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "chat.jinja").write_text(template)
    chat_tokenizer(None).save_pretrained(folder / "tokenizer")
    sizes = {"n_layer": 1, "n_embd": 8, "n_head": 1, "n_positions": 64}
    return Suite.of(
        folder=folder,
        local=True,
        name="chats",
        task="causal-lm",
        model={"config": {"model_type": "gpt2", **sizes}},
        tokenizer={"path": "./tokenizer"},
        dataset={"path": "chats.jsonl", "chat_template": "chat.jinja", **dataset},
        sequence_length=64,
        matrix={"batch_size_per_device": [1, 2]},
    )


def lines_of(suite: Suite) -> str:
    check_startable(suite)
    return "\n".join(file_lines(suite, ()))


def test_a_plan_says_how_many_conversations_are_too_long_and_what_becomes_of_them(
    tmp_path: Path,
) -> None:
    long_answer = {"role": "assistant", "content": "a" * 90}
    rows = [CHATS["one turn"], {"messages": [QUESTION, long_answer]}, CHATS["one turn"]]
    told = lines_of(suite_of(tmp_path, rows))
    assert (
        "data: 1 of 3 conversations of split train are longer than 64 tokens and are cut "
        "(dataset.too_long: cut)"
    ) in told
    assert "dataset.chat_template chat.jinja: 1 file" in told
    assert told == lines_of(suite_of(tmp_path, rows))  # from the cache
    told = lines_of(suite_of(tmp_path, rows, too_long="leave-out"))
    assert "longer than 64 tokens and are left out (dataset.too_long: leave-out)" in told


PROBLEMS: dict[str, tuple[Any, str]] = {
    "no answer": ({"messages": [QUESTION]}, "chats.jsonl, row 2: the conversation has no turn"),
    "empty content": (
        {"messages": [QUESTION, {"role": "assistant", "content": ""}]},
        "chats.jsonl, row 2: turn 2, of assistant, has no text",
    ),
    "order": (
        {"messages": [QUESTION, QUESTION, ANSWER]},
        "row 2: the chat template refuses the conversation: roles must alternate; its roles are "
        "user, user, assistant",
    ),
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_plan_refuses_the_conversation_that_a_job_would(kind: str, tmp_path: Path) -> None:
    row, told = PROBLEMS[kind]
    with pytest.raises(SuiteInvalid, match="row 2") as refused:
        check_startable(suite_of(tmp_path, [CHATS["one turn"], row]))
    assert told in str(refused.value)


def test_a_plan_refuses_a_template_that_is_none_and_a_model_without_one(tmp_path: Path) -> None:
    with pytest.raises(SuiteInvalid, match="a syntax error in line 1"):
        check_startable(suite_of(tmp_path, [CHATS["one turn"]], template="{% for %}"))
    with pytest.raises(SuiteInvalid, match="no chat template, as that of a base model; expected"):
        check_startable(suite_of(tmp_path, [CHATS["one turn"]], chat_template=None))
    with pytest.raises(SuiteInvalid, match=r"'short\.jinja' does not exist on this machine"):
        check_startable(suite_of(tmp_path, [CHATS["one turn"]], chat_template="short.jinja"))
    with pytest.raises(SuiteInvalid, match="none of 1 conversations of split train has a token"):
        check_startable(suite_of(tmp_path, [CHATS["one turn"]], template="Hello"))


def test_without_the_tokenizer_the_form_of_conversations_is_checked(tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").write_text(json.dumps(CHATS["one turn"]) + "\n")
    suite = Suite.of(
        folder=tmp_path,
        local=True,
        name="chats",
        task="causal-lm",
        model="somebody/chat",
        dataset="chats.jsonl",
        sequence_length=64,
        matrix={"batch_size_per_device": [1, 2]},
    )
    told = "data: split train has 1 conversations; the tokenizer is not on this machine"
    assert told in lines_of(suite)
