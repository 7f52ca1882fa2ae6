"""A plan reads the conversations on this machine: it counts the long ones, and refuses what a job
would refuse, with file and row.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.chat_samples import ANSWER, CHATS, QUESTION, chat_tokenizer
from traindyno.api.chat_check import chat_lines, find_chat_problems
from traindyno.api.plans import file_lines
from traindyno.api.suite_loading import Suite, check_startable
from traindyno.core.errors import SuiteInvalid

TEMPLATE = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
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


def test_a_plan_counts_overlong_conversations_and_says_their_fate(
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


def test_a_plan_refuses_a_length_that_leaves_out_every_conversation(tmp_path: Path) -> None:
    long_answer = {"role": "assistant", "content": "a" * 90}
    rows = [{"messages": [QUESTION, long_answer]}] * 2
    with pytest.raises(SuiteInvalid) as refused:
        check_startable(suite_of(tmp_path, rows, too_long="leave-out"))
    assert (
        "none of 2 conversations of split train remains: 2 are longer than 64 tokens "
        "(dataset.too_long: leave-out); expected a larger sequence_length, or too_long: cut"
    ) in str(refused.value)
    check_startable(suite_of(tmp_path, [*rows, CHATS["one turn"]], too_long="leave-out"))


@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_plan_refuses_the_same_conversation_as_a_job(kind: str, tmp_path: Path) -> None:
    row, told = PROBLEMS[kind]
    with pytest.raises(SuiteInvalid, match="row 2") as refused:
        check_startable(suite_of(tmp_path, [CHATS["one turn"], row]))
    assert told in str(refused.value)


def test_a_plan_refuses_a_bad_template_and_a_model_without_one(tmp_path: Path) -> None:
    with pytest.raises(SuiteInvalid, match="a syntax error in line 1"):
        check_startable(suite_of(tmp_path, [CHATS["one turn"]], template="{% for %}"))
    with pytest.raises(SuiteInvalid, match="no chat template, as that of a base model; expected"):
        check_startable(suite_of(tmp_path, [CHATS["one turn"]], chat_template=None))
    with pytest.raises(SuiteInvalid, match=r"'short\.jinja' does not exist on this machine"):
        check_startable(suite_of(tmp_path, [CHATS["one turn"]], chat_template="short.jinja"))
    with pytest.raises(SuiteInvalid, match="none of 1 conversations of split train has a token"):
        check_startable(suite_of(tmp_path, [CHATS["one turn"]], template="Hello"))


def test_a_plan_refuses_a_template_that_is_no_text_and_a_folder(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, [CHATS["one turn"]])
    (tmp_path / "chat.jinja").write_text(TEMPLATE, encoding="utf-16")
    with pytest.raises(SuiteInvalid) as refused:
        check_startable(suite)
    assert (
        "the chat template chat.jinja is not UTF-8 at byte 0; expected a file in UTF-8 with a "
        "template of Jinja"
    ) in str(refused.value)
    suite = suite_of(tmp_path, [CHATS["one turn"]], chat_template="./tokenizer")
    with pytest.raises(SuiteInvalid, match="template tokenizer can't be read: Is a directory; exp"):
        check_startable(suite)


def test_prompts_and_completions_that_are_texts_need_no_template(tmp_path: Path) -> None:
    row = {"prompt": "2 + 3 is", "completion": " 5."}
    told = lines_of(suite_of(tmp_path, [row], chat_template=None))
    assert "data: 0 of 1 conversations of split train are longer than 64 tokens" in told
    with pytest.raises(SuiteInvalid, match="no chat template, as that of a base model; expected"):
        check_startable(suite_of(tmp_path, [row, CHATS["one turn"]], chat_template=None))


def test_an_adapter_without_a_tokenizer_has_that_of_its_base(tmp_path: Path) -> None:
    suite_of(tmp_path, [CHATS["one turn"]])
    base = tmp_path / "base"
    chat_tokenizer(TEMPLATE).save_pretrained(base)
    (base / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "adapter").mkdir()
    adapter = {"base_model_name_or_path": str(base), "r": 2}
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(adapter))
    going_on = Suite.of(
        folder=tmp_path,
        local=True,
        name="chats",
        task="causal-lm",
        model="./adapter",
        dataset="chats.jsonl",
        sequence_length=64,
        training={"adapter": {"rank": 2}},
        matrix={"batch_size_per_device": [1, 2]},
    )
    assert find_chat_problems(going_on.suite, tmp_path) == []
    assert (
        "0 of 1 conversations of split train are longer" in chat_lines(going_on.suite, tmp_path)[0]
    )


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
