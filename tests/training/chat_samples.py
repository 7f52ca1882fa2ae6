"""Conversations of each kind that chat templates know, and a tokenizer for them."""

import re
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

QUESTION = {"role": "user", "content": "What is 2 + 3?"}
ANSWER = {"role": "assistant", "content": "It is 5."}
CALL = {"name": "add", "arguments": {"a": 2, "b": 3}}
TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
CHATS: dict[str, dict[str, Any]] = {
    "one turn": {"messages": [QUESTION, ANSWER]},
    "several turns": {
        "messages": [
            QUESTION,
            ANSWER,
            {"role": "user", "content": "And\n\ttwice that, für Zoë?"},
            {"role": "assistant", "content": "10 €\n"},
        ]
    },
    "system": {"messages": [{"role": "system", "content": "Be brief."}, QUESTION, ANSWER]},
    "tools": {
        "messages": [
            QUESTION,
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"type": "function", "function": CALL}],
            },
            {"role": "tool", "name": "add", "content": "5"},
            ANSWER,
        ],
        "tools": [TOOL],
    },
    "ends with a question": {"messages": [QUESTION, ANSWER, {"role": "user", "content": "Why?"}]},
}
#: The tokens of templates that a tokenizer would not cut
CONTROL = re.compile(r"<\|?[\w/| -]+\|?>|\[/?[A-Z_]+\]|<\uff5c[^\uff5c]+\uff5c>")


def chat_tokenizer(template: Any, *written: str) -> PreTrainedTokenizerFast:
    """A token for each byte, and for each control token in the texts ``written``."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({byte: number for number, byte in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    control = sorted({token for text in written for token in CONTROL.findall(text)})
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in control])
    tokenizer.chat_template = template
    return tokenizer


def in_parts(chat: dict[str, Any]) -> dict[str, Any]:
    turns = [
        {**turn, "content": [{"type": "text", "text": turn["content"]}]}
        for turn in chat["messages"]
    ]
    return {**chat, "messages": turns}
