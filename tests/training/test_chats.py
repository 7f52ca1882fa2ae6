"""Conversations become tokens with a mask of their answers: in each form of rows, by each kind of
template, packed and not, or they are refused with file and row.
"""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from transformers import LlamaConfig, LlamaForCausalLM

from tests.properties import examples
from tests.training.chat_samples import ANSWER, CHATS, QUESTION, TOOL, chat_tokenizer, in_parts
from tests.training.jobs import REPO_ROOT
from tests.training.run_documents import parse_run, run_document
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Dataset, Workload
from traindyno.core.suite.choices import DatasetFormat, LossOn, Padding, Task, TooLong
from training.data import chat_template
from training.data.chat_encoding import ChatEncoder
from training.data.chat_template import choose_template
from training.data.collate import Collate, PadTo
from training.data.conversations import parsed
from training.data.files import local_files
from training.data.loader import StepBatches
from training.data.prepare import prepare, train_tokenizer
from training.data.sequences import Sequences, read_sequences
from training.data.stream import LABEL_COUNT, StreamedBatches
from training.errors import WorkloadError
from training.models.model import set_document_masking
from training.models.objective import IGNORED_LABEL, Objective

TEMPLATES = REPO_ROOT / "tests/data/chat_templates"
LENGTH = 200
CHAT = Dataset(path="data", format=DatasetFormat.CHAT)
ASKED = Workload(task=Task.CAUSAL_LM, examples=1000, sequence_length=LENGTH, dataset=CHAT)
#: A turn's end is the end token.
PLAIN = (
    "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)
#: Each part is a line.
OF_PARTS = (
    "{% for m in messages %}{{ m.role }}: {% for part in m.content %}{% if part.type == 'text' %}"
    "{{ part.text }}{% endif %}{% endfor %}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
#: As Mistral 7B Instruct has it
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0"
    " % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant') }}"
    "{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}"
    "{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"
)
CALL = '{"name": "add", "parameters": {"a": 2, "b": 3}}<|eot_id|>'
#: Template → kind of conversation → its answers, by hand
BY_HAND: dict[str, dict[str, list[str]]] = {
    "llama3_1": {
        "one turn": ["It is 5.<|eot_id|>"],
        "several turns": ["It is 5.<|eot_id|>", "10 €<|eot_id|>"],
        "system": ["It is 5.<|eot_id|>"],
        "tools": [CALL, "It is 5.<|eot_id|>"],
        "ends with a question": ["It is 5.<|eot_id|>"],
    },
    "mistral": {
        "one turn": ["It is 5.</s>"],
        "several turns": ["It is 5.</s>", "10 €\n</s>"],
        "ends with a question": ["It is 5.</s>"],
    },
}
BY_HAND["llama3_2"] = BY_HAND["llama3_1"]
TURNS = CHATS["system"]["messages"]
ROLES = {"system": "system", "user": "human", "assistant": "gpt"}
FROM_VALUE = [{"from": ROLES[turn["role"]], "value": turn["content"]} for turn in TURNS]
SAME_ROWS: dict[str, dict[str, Any]] = {
    "messages": {"messages": TURNS},
    "parts": in_parts({"messages": TURNS}),
    "JSON": {"messages": json.dumps(TURNS)},
    "from and value": {"conversations": FROM_VALUE},
    "prompt and completion": {"prompt": TURNS[:2], "completion": TURNS[2:]},
    "instruction": {
        "instruction": QUESTION["content"],
        "input": "",
        "output": ANSWER["content"],
        "system": "Be brief.",
    },
}
REFUSED: dict[str, tuple[Any, str]] = {
    "no answer": ({"messages": [QUESTION]}, "has no turn of assistant; expected an answer"),
    "empty content": (
        {"messages": [QUESTION, {"role": "assistant", "content": " "}]},
        "turn 2, of assistant, has no text; expected one",
    ),
    "no content": ({"messages": [{"role": "user"}, ANSWER]}, "turn 1, of user, has no text"),
    "unknown role": (
        {"messages": [{"role": "bot", "content": "a"}]},
        "turn 1 has the role str 'bot'; expected one of system, developer, user",
    ),
    "no turns": ({"messages": []}, "messages is list '[]'; expected a list of turns"),
    "a text": ({"messages": "Hello"}, "messages is str 'Hello'; expected a list of turns"),
    "no mapping": ({"messages": ["a"]}, "turn 1 is str 'a'; expected role and content"),
    "an image": (
        {"messages": [{"role": "user", "content": [{"type": "image"}]}, ANSWER]},
        "turn 1 has a part that is str 'image'; expected texts",
    ),
    "a part alone": (
        {"messages": [{"role": "user", "content": {"type": "text", "text": "a"}}, ANSWER]},
        "turn 1 has a part that is dict \"{'type': 'text', 'text': 'a'}\"; expected texts",
    ),
    "an answer of weight 0": (
        {"messages": [QUESTION, {**ANSWER, "weight": 0}, QUESTION, ANSWER]},
        "a turn of assistant has another weight or train than 1, which is not read; expected",
    ),
    "other columns": (
        {"question": "a", "response": "b"},
        "its columns with a value are question, response; expected messages, conversations",
    ),
    "preferences": (
        {"prompt": "a", "completion": "b", "chosen": "c", "rejected": "d"},
        "its columns with a value are prompt, completion, chosen, rejected; expected messages",
    ),
    "a wanted completion": (
        {"prompt": "a", "completion": "b", "label": True},
        "its columns with a value are prompt, completion, label; expected messages",
    ),
    "an image beside turns": (
        {**CHATS["one turn"], "images": ["a.png"]},
        "it has a column images, which is not read; expected all turns in messages, as texts",
    ),
    "a completion that asks": (
        {"prompt": [QUESTION], "completion": [ANSWER, QUESTION]},
        "the completion has turns of user; expected turns of assistant alone",
    ),
    "an empty completion": ({"prompt": "a", "completion": ""}, "the completion is str ''"),
    "no object": ([1], "it is list '[1]'; expected an object"),
    "tools": ({**CHATS["one turn"], "tools": "add"}, "tools is text and no JSON"),
    "a call that is a text": (
        {"messages": [QUESTION, {**ANSWER, "tool_calls": ["add"]}]},
        "tool_calls has str 'add'; expected functions with a name",
    ),
    "a system of no text": (
        {**CHATS["one turn"], "system": ["Be brief."]},
        "system is list \"['Be brief.']\"; expected text",
    ),
    "an input of no text": (
        {"instruction": "Square it", "input": 0, "output": "0"},
        "input is int '0'; expected text",
    ),
    "an input below parts": (
        {"instruction": [{"type": "text", "text": "Add"}], "input": "2, 3", "output": "5"},
        "it has an input, and the instruction is list",
    ),
    "system beside texts": (
        {"prompt": "How far?", "completion": "Far", "system": "Be brief."},
        "it has a system text, and its prompt is a text",
    ),
    "tools beside texts": (
        {"prompt": "How far?", "completion": "Far", "tools": [TOOL]},
        "it has tools, and its prompt is a text",
    ),
    "history": (
        {"instruction": "Why?", "output": "So.", "history": [["What?", "That."]]},
        "it has a column history, which is not read; expected all turns in messages",
    ),
    "a system of another name": (
        {"instruction": "Why?", "output": "So.", "system_prompt": "Be brief."},
        "it has a column system_prompt, which is not read",
    ),
    "history as JSON": (
        {"prompt": [QUESTION], "completion": [ANSWER], "history": '[["What?", "That."]]'},
        "it has a column history, which is not read",
    ),
    "deep JSON": ({"messages": "[" * 90_000 + "]" * 90_000}, "it is nested too deep"),
    "two texts of a turn": (
        {"messages": [QUESTION, {**ANSWER, "value": "No"}]},
        "turn 2 has content and value; expected one of them",
    ),
    "two roles of a turn": (
        {"messages": [QUESTION, {**ANSWER, "from": "human"}]},
        "turn 2 has role and from; expected one of them",
    ),
    "half a character": (
        {"messages": [QUESTION, {"role": "assistant", "content": "\ud83d"}]},
        "a half of a surrogate pair",
    ),
    "tools that no template writes": (
        {**CHATS["one turn"], "tools": [TOOL]},
        "train.jsonl, row 2: the chat template does not write the tool 'add'; expected a template",
    ),
    "a call that no template writes": (
        {"messages": [QUESTION, {**ANSWER, "tool_calls": [{"function": {"name": "add"}}]}]},
        "does not write the tool 'add'",
    ),
    "tools among arguments": (
        {**CHATS["one turn"], "chat_template_kwargs": {"tools": [TOOL]}},
        "chat_template_kwargs has tools, which a template gets from the row; expected arguments",
    ),
    "order of roles": ({"messages": [ANSWER, QUESTION]}, "refuses the conversation: Conversation"),
}
TEMPLATE_PROBLEMS = {
    "{% for %}": "the chat template has a syntax error in line 1",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}": "access to attribute '__class__'",
    "{{ range(999999) }}": "the chat template refuses the conversation: Range too big",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}": (
        "train.jsonl, row 1: the chat template refuses the conversation: it has not ended after "
        "0.2 s of processor time; its roles are user, assistant"
    ),
    "{{ 10 ** (10 ** 8) }}": "it has not ended after 0.2 s of processor time",
    "{{ 'a' * 10 ** 15 }}": "the chat template refuses the conversation: MemoryError",
    "{{ messages[9].content.x }}": "the chat template refuses the conversation",
    "{% for m in messages %}{{ messages | length }}{{ m.content }}{% endfor %}": "becomes",
}


def template_of(name: str) -> str:
    return MISTRAL if name == "mistral" else (TEMPLATES / f"{name}.jinja").read_text()


def rows_of(
    rows: Sequence[Any], tokenizer: Any, *, length: int = LENGTH, **options: Any
) -> list[Any]:
    encoder = ChatEncoder(
        tokenizer, replace(CHAT, **options), sequence_length=length, packing=False
    )
    numbered = ((f"{number}.json", number, row) for number, row in enumerate(rows, start=1))
    return list(encoder.encode(parsed(numbered)))


def answers_of(row: Any, tokenizer: Any) -> list[str]:
    """The texts of the tokens that count, one for each run of them."""
    cuts = np.flatnonzero(np.diff(row.loss_mask.astype(int))) + 1
    parts = zip(np.split(row.tokens, cuts), np.split(row.loss_mask, cuts), strict=True)
    return [tokenizer.decode(tokens) for tokens, counts in parts if counts[0]]


def text_of(tokens: Any, tokenizer: Any) -> str:
    text: str = tokenizer.decode(tokens)
    return text


def write(folder: Path, rows: Sequence[Any], name: str = "train.jsonl") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def prepared(
    folder: Path, rows: Sequence[Any], *, template: str = PLAIN, packing: bool = False
) -> Sequences:
    tokenizer = chat_tokenizer(template)
    prepare(ASKED, tokenizer, write(folder / "data", rows), folder / "out", packing=packing)
    return read_sequences(folder / "out" / "train")


@pytest.mark.parametrize("name", BY_HAND)
def test_answers_are_found_by_the_prefixes_of_a_template_without_marks(name: str) -> None:
    template = template_of(name)
    tokenizer = chat_tokenizer(template, template, "<|eot_id|>")
    for kind, answers in BY_HAND[name].items():
        (row,) = rows_of([CHATS[kind]], tokenizer, length=10_000)
        assert answers_of(row, tokenizer) == answers, kind


def test_a_training_template_known_by_the_text_marks_the_answers() -> None:
    template = template_of("qwen2_5")
    tokenizer = chat_tokenizer(template, template)
    (row,) = rows_of([CHATS["several turns"]], tokenizer, length=10_000)
    # With the line end before the answer, as TRL marks it
    assert answers_of(row, tokenizer) == ["\nIt is 5.<|im_end|>\n", "\n10 €\n<|im_end|>\n"]
    (row,) = rows_of([CHATS["several turns"]], tokenizer, length=10_000, loss_on=LossOn.ALL)
    assert row.loss_mask[1:].all()


def test_marks_of_a_template_are_taken_before_its_prefixes() -> None:
    template = PLAIN.replace(
        "{{ m.content }}", "{% generation %}{{ m.content }}{% endgeneration %}"
    )
    tokenizer = chat_tokenizer(template)
    (row,) = rows_of([CHATS["one turn"]], tokenizer)
    assert answers_of(row, tokenizer) == ["What is 2 + 3?", "It is 5."]


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "saved"])
@pytest.mark.parametrize("form", SAME_ROWS)
def test_all_forms_in_all_files_are_the_same_rows(form: str, kind: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    rows = [SAME_ROWS[form]] * 2
    data.mkdir()
    match kind:
        case "jsonl":
            write(data, rows)
        case "json":
            (data / "train.json").write_text(json.dumps(rows))
        case "parquet":
            parquet.write_table(pa.Table.from_pylist(rows), data / "train.parquet")
        case "saved":
            datasets.Dataset.from_list(rows).save_to_disk(data / "train")
    for number, named in enumerate((CHAT, replace(CHAT, format=DatasetFormat.AUTO))):
        tokenizer = chat_tokenizer(PLAIN)
        out = tmp_path / str(number)
        prepare(replace(ASKED, dataset=named), tokenizer, data, out, packing=False)
        sequences = read_sequences(out / "train")
        assert len(sequences) == 2
        text = tokenizer.decode(sequences.tokens[: sequences.lengths[0]])
        assert text == ("<s>system: Be brief.</s>user: What is 2 + 3?</s>assistant: It is 5.</s>")
        assert sequences.loss_mask is not None
        counted = sequences.tokens[: sequences.lengths[0]][
            sequences.loss_mask[: sequences.lengths[0]] != 0
        ]
        assert tokenizer.decode(counted) == "It is 5.</s>"


def test_empty_columns_beside_a_row_change_nothing() -> None:
    asked = {"instruction": QUESTION["content"], "output": ANSWER["content"]}
    empty = {"input": [], "system": " ", "tools": [], "history": "[]", "images": []}
    texts = {"prompt": "2 + 3 is", "completion": " 5."}
    tokenizer = chat_tokenizer(PLAIN)
    of_parts = {**asked, "instruction": [{"type": "text", "text": QUESTION["content"]}]}
    for row in (asked, of_parts, texts):
        plain, beside = rows_of([row, {**row, **empty}], tokenizer)
        assert text_of(plain.tokens, tokenizer) == text_of(beside.tokens, tokenizer)


def test_a_template_gets_texts_or_parts_as_it_reads_them() -> None:
    texts = {}
    for template in (PLAIN, OF_PARTS):
        tokenizer = chat_tokenizer(template)
        rows = rows_of([CHATS["one turn"], in_parts(CHATS["one turn"])], tokenizer)
        texts[template] = {text_of(row.tokens, tokenizer).removeprefix("<s>") for row in rows}
    assert texts[PLAIN] == texts[OF_PARTS] == {"user: What is 2 + 3?</s>assistant: It is 5.</s>"}


def test_prompts_and_completions_of_plain_text_have_no_template() -> None:
    tokenizer = chat_tokenizer(None)
    row = {"prompt": "2 + 3 is", "completion": " 5."}
    (row_of_tokens,) = rows_of([row], tokenizer)
    assert tokenizer.decode(row_of_tokens.tokens) == "2 + 3 is 5.</s>"
    assert answers_of(row_of_tokens, tokenizer) == [" 5.</s>"]


def test_a_tool_is_in_the_text_of_its_template_of_the_dictionary() -> None:
    both = {"default": PLAIN, "tool_use": "{{ tools[0].function.name }} " + PLAIN}
    tokenizer = chat_tokenizer(both)
    rows = [CHATS["one turn"], {**CHATS["one turn"], "tools": json.dumps([TOOL])}]
    plain, with_tools = rows_of(rows, tokenizer)
    assert not text_of(plain.tokens, tokenizer).startswith("add ")
    assert text_of(with_tools.tokens, tokenizer).startswith("add ")


def test_arguments_of_a_call_as_json_are_those_of_a_mapping() -> None:
    tokenizer = chat_tokenizer(template_of("llama3_1"))
    turns = []
    for arguments in ({"a": 2}, '{"a": 2}', "", '{"a": null}'):
        call = {"type": "function", "function": {"name": "add", "arguments": arguments}}
        turns.append({"role": ANSWER["role"], "content": None, "tool_calls": [call]})
    rows = rows_of([{"messages": [QUESTION, turn]} for turn in turns], tokenizer, length=10_000)
    told = [answers_of(row, tokenizer)[0].partition('"parameters": ')[2] for row in rows]
    ends = ['{"a": 2}', '{"a": 2}', "{}", '{"a": null}']
    assert told == [f"{end}}}<|eot_id|>" for end in ends]
    without = {"messages": [QUESTION, {**ANSWER, "tool_calls": []}]}
    (row,) = rows_of([without], tokenizer, length=10_000)
    assert answers_of(row, tokenizer) == ["It is 5.<|eot_id|>"]


def test_arguments_of_a_template_come_from_the_suite_and_the_row() -> None:
    tokenizer = chat_tokenizer(f"{{{{ day }}}} {PLAIN}")
    rows = [CHATS["one turn"], {**CHATS["one turn"], "chat_template_kwargs": {"day": "Sunday"}}]
    read = rows_of(rows, tokenizer, chat_template_kwargs={"day": "Monday"})
    assert [text_of(row.tokens, tokenizer).split()[0] for row in read] == ["Monday", "Sunday"]


def said(number: int, length: int) -> dict[str, Any]:
    return {"messages": [QUESTION, {"role": "assistant", "content": str(number) * length}]}


@given(st.lists(st.integers(1, 150), min_size=1, max_size=120))
@examples(30)
def test_conversations_are_packed_whole_and_each_once(lengths: list[int]) -> None:
    tokenizer = chat_tokenizer(PLAIN)
    rows = [("rows", number, said(number % 10, size)) for number, size in enumerate(lengths)]
    single, packed = (
        list(
            ChatEncoder(tokenizer, CHAT, sequence_length=LENGTH, packing=packing).encode(
                parsed(iter(rows))
            )
        )
        for packing in (False, True)
    )
    assert all(len(row.tokens) <= LENGTH for row in packed)
    conversations = []
    for row in packed:
        assert row.documents is not None
        assert row.loss_mask is not None
        ends = [*row.documents[1:], len(row.tokens)]
        for begin, end in zip(row.documents, ends, strict=True):
            conversations.append(
                (row.tokens[begin:end].tolist(), row.loss_mask[begin:end].tolist())
            )
            assert not row.loss_mask[begin]
    alone = [(row.tokens.tolist(), np.asarray(row.loss_mask).tolist()) for row in single]
    assert sorted(conversations) == sorted(alone)


def test_an_overlong_conversation_is_cut_with_an_answer_or_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long_question = {"messages": [{"role": "user", "content": "q" * 300}, ANSWER]}
    long_answer = {
        "messages": [{"role": "user", "content": "q" * 300}, said(7, 400)["messages"][1]]
    }
    tokenizer = chat_tokenizer(PLAIN)
    rows = [said(1, 300), long_question, long_answer, said(2, 5)]
    read = rows_of(rows, tokenizer)
    assert [len(row.tokens) for row in read[:3]] == [LENGTH] * 3
    assert text_of(read[0].tokens, tokenizer).startswith("<s>user: ")
    assert text_of(read[1].tokens, tokenizer).endswith("assistant: It is 5.</s>")
    assert answers_of(read[2], tokenizer) == ["7" * (LENGTH - 1)]
    kept = rows_of(rows, tokenizer, too_long=TooLong.LEAVE_OUT)
    assert [answers_of(row, tokenizer) for row in kept] == [["22222</s>"]]
    prepared(tmp_path, rows)
    assert "conversations of more than 200 tokens: 3 of 4 (cut)" in capsys.readouterr().out


def test_a_conversation_without_a_counted_token_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = (
        "{{ bos_token }}{% for m in messages %}{{ m.role }}{% if m.content != 'It is 5.' %}"
        "{% generation %}{{ m.content }}{% endgeneration %}{% endif %}{% endfor %}"
    )
    rows = [{"messages": [{"role": "user", "content": "It is 5."}, ANSWER]}, said(1, 5)]
    assert len(prepared(tmp_path, rows, template=template)) == 1
    told = capsys.readouterr().out
    assert "no token of an answer is in them: 1 (such as train.jsonl, row 1)" in told


def small_llama(vocabulary: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=LENGTH,
            use_cache=False,
        )
    )


def batches(sequences: Sequences, *, documents: bool, **settings: Any) -> Any:
    padding = Padding.LONGEST
    collate = Collate(
        task=Task.CAUSAL_LM,
        pad_to=PadTo(padding=padding, sequence_length=LENGTH, pad_token=0),
        has_positions=documents,
    )
    given = Settings(instance="local.cpu", strategy="single", padding=padding, **settings)  # type: ignore[arg-type]
    return [
        StepBatches(sequences, collate, given, data_rank=rank, data_world_size=2)[0]
        for rank in range(2)
    ]


@pytest.mark.parametrize("loss_on", LossOn)
def test_packed_and_padded_conversations_have_one_loss(loss_on: LossOn, tmp_path: Path) -> None:
    rows = [said(number % 10, 5 + 7 * number % 60) for number in range(24)]
    asked = replace(ASKED, dataset=replace(CHAT, loss_on=loss_on))
    tokenizer = chat_tokenizer(PLAIN)
    write(tmp_path / "data", rows)
    model = small_llama(len(tokenizer))
    losses = []
    for packing in (False, True):
        out = tmp_path / str(packing)
        prepare(asked, tokenizer, tmp_path / "data", out, packing=packing)
        sequences = read_sequences(out / "train")
        assert (len(sequences) < 24) is packing
        collate = Collate(
            task=Task.CAUSAL_LM,
            pad_to=PadTo(padding=Padding.MAX_LENGTH, sequence_length=LENGTH, pad_token=0),
            has_positions=packing,
        )
        every = np.arange(len(sequences))
        batch = collate(sequences, every, every)
        counts = collate.label_counts(sequences, every)
        assert counts is not None
        assert counts.sum() == int((batch["labels"][:, 1:] != IGNORED_LABEL).sum())
        set_document_masking(packing)
        try:
            loss = Objective(model, Task.CAUSAL_LM).train()(**batch)
        finally:
            set_document_masking(False)
        model.zero_grad()
        loss.backward()
        gradients = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])  # type: ignore[union-attr]
        losses.append((loss.item(), gradients))
    assert losses[0][0] == pytest.approx(losses[1][0], rel=1e-5)
    torch.testing.assert_close(losses[0][1], losses[1][1], rtol=1e-4, atol=1e-6)


def test_ranks_and_micro_batches_are_weighted_by_their_answers(tmp_path: Path) -> None:
    folder = prepared(tmp_path, [said(number % 10, 1 + number**2 % 90) for number in range(12)])
    model = small_llama(300)
    objective = Objective(model, Task.CAUSAL_LM).train()
    parts = [
        batch
        for of_rank in batches(
            folder, documents=False, batch_size_per_device=2, gradient_accumulation_steps=3
        )
        for batch in of_rank
    ]
    assert len(parts) == 6
    weighted = sum(objective(**batch).item() for batch in parts) / len(parts)
    losses = 0.0
    counts = 0
    for batch in parts:
        alone = {name: value for name, value in batch.items() if name != "weight"}
        count = int((batch["labels"][:, 1:] != IGNORED_LABEL).sum())
        losses += objective(**alone).item() * count
        counts += count
    assert weighted == pytest.approx(losses / counts, rel=1e-5)


@pytest.mark.parametrize("kind", REFUSED)
def test_a_row_without_a_conversation_is_refused_with_file_and_row(
    kind: str, tmp_path: Path
) -> None:
    row, told = REFUSED[kind]
    with pytest.raises(WorkloadError) as refused:
        prepared(tmp_path, [CHATS["one turn"], row], template=MISTRAL)
    assert str(refused.value).startswith("train.jsonl, row 2: ")
    assert told in str(refused.value)


@pytest.mark.parametrize("template", TEMPLATE_PROBLEMS)
def test_a_failing_template_or_one_hiding_its_answers_is_refused(
    template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_template, "RENDER_SECONDS", 0.2)
    with pytest.raises(WorkloadError) as refused:
        prepared(tmp_path, [CHATS["one turn"]], template=template)
    assert TEMPLATE_PROBLEMS[template] in str(refused.value)


def test_the_template_is_the_tokenizers_a_named_one_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "chat.jinja"
    file.write_text(PLAIN)
    tokenizer = chat_tokenizer(None)
    with pytest.raises(WorkloadError, match="has no chat template, as that of a base model"):
        rows_of([CHATS["one turn"]], tokenizer)
    choose_template(tokenizer, replace(CHAT, chat_template=str(file)), file)
    assert tokenizer.chat_template == PLAIN
    file.write_text(PLAIN, encoding="utf-8-sig")
    choose_template(tokenizer, replace(CHAT, chat_template=str(file)), file)
    assert tokenizer.chat_template == PLAIN
    named = {"short": "a", "long": "b"}
    for asked, told in ((None, "expected one of these names"), ("medium", "its templates are")):
        with pytest.raises(WorkloadError, match=told):
            choose_template(chat_tokenizer(named), replace(CHAT, chat_template=asked), None)
    tokenizer = chat_tokenizer(named)
    choose_template(tokenizer, replace(CHAT, chat_template="long"), None)
    assert tokenizer.chat_template == "b"


def test_a_tokenizer_is_trained_on_the_spoken_texts(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(ASKED, write(tmp_path, [CHATS["one turn"]] * 20), 280)
    assert len(tokenizer("It is 5.")["input_ids"]) < 5


def test_a_half_character_is_refused_before_a_tokenizer_is_trained(tmp_path: Path) -> None:
    rows = [CHATS["one turn"], {"prompt": "2 + 3 is", "completion": "\ud83d"}]
    with pytest.raises(WorkloadError, match=r"row 2: the text has '\\ud83d' at character 9, a"):
        train_tokenizer(ASKED, write(tmp_path, rows), 280)


@pytest.mark.parametrize("packing", [False, True])
def test_streamed_conversations_equal_those_of_a_preparation(packing: bool, tmp_path: Path) -> None:
    rows = [said(number % 10, 5 + 7 * number % 60) for number in range(24)]
    data = write(tmp_path / "data", rows)
    settings = {"batch_size_per_device": 1, "packing": packing}
    workload = {"dataset": {"path": "s3://bucket/data"}, "sequence_length": LENGTH}
    run = parse_run(run_document(workload=workload, settings=settings))
    tokenizer = chat_tokenizer(PLAIN)
    out = tmp_path / "out"
    prepare(run.workload, tokenizer, data, out, packing=packing)
    sequences = read_sequences(out / "train")
    padded = PadTo(padding=Padding.MAX_LENGTH, sequence_length=LENGTH, pad_token=0)
    collate = Collate(task=Task.CAUSAL_LM, pad_to=padded, has_positions=packing)
    streamed = StreamedBatches(
        run, local_files(data), tokenizer, collate, data_rank=0, data_world_size=1
    )
    batches = list(itertools.islice(streamed, len(sequences)))
    expected = [
        collate(sequences, np.asarray([row]), np.asarray([row])) for row in range(len(sequences))
    ]
    for batch, other in zip(batches, expected, strict=True):
        counted = int((batch["labels"] != IGNORED_LABEL).sum())
        assert float(batch.pop(LABEL_COUNT)) == counted
        assert batch.keys() == other.keys()
        for name, values in batch.items():
            torch.testing.assert_close(values, other[name])
