"""Answers inference requests for a trained model.

The container of an endpoint has no other file of this project.

PyTorch's inference container calls ``model_fn`` once, then ``input_fn``, ``predict_fn`` and
``output_fn`` per request. Shapes of tensors: B texts, L tokens of the longest of them, C labels, V
tokens of the vocabulary.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

SETTINGS_FILE = "traindyno-serving.json"
# An endpoint on instances with GPUs sets it.
GPU_VARIABLE = "TRAINDYNO_NEEDS_GPU"
MOST_PREDICTIONS = 5
# A language model gives a probability for each token of its vocabulary at each place of each text.
TEXTS_AT_ONCE = 8
AUTO_CLASSES: Mapping[str, Any] = {
    "causal-lm": AutoModelForCausalLM,
    "masked-lm": AutoModelForMaskedLM,
    "sequence-classification": AutoModelForSequenceClassification,
}
Answer = dict[str, Any]


class BadRequest(ValueError):
    """The request does not have the form that the handler reads."""


class Frame(NamedTuple):
    """The tokens that a tokenizer puts around each text: how many before, and which ones behind."""

    before: int
    behind: list[int]


class Served(NamedTuple):
    """A model in evaluation mode, with its tokenizer and task.

    ``template_arguments`` are those with which the chat template made its training data. Of a text
    with more than ``longest`` tokens, a causal language model reads the last ones, which it goes on
    from, and another model the first ones.
    """

    task: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    frame: Frame
    device: torch.device
    longest: int
    template_arguments: Mapping[str, Any]


def model_fn(model_dir: str) -> Served:
    has_gpu = torch.cuda.is_available()
    if os.environ.get(GPU_VARIABLE) and not has_gpu:
        raise RuntimeError(
            f"this instance type has a GPU, and PyTorch {torch.__version__} sees none: expected a "
            f"host driver for CUDA {torch.version.cuda}; a model on the CPU would be billed as on "
            "a GPU"
        )
    return load(Path(model_dir), torch.device("cuda" if has_gpu else "cpu"))


def load(folder: Path, device: torch.device) -> Served:
    """Loads the model in single precision, whatever precision it was trained in."""
    settings = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    task = settings["task"]
    model = AUTO_CLASSES[task].from_pretrained(folder, dtype=torch.float32, trust_remote_code=False)
    model = model.to(device).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    tokenizer.padding_side = "right"
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    longest = int(min(positions or tokenizer.model_max_length, tokenizer.model_max_length))
    arguments = settings.get("chat_template_kwargs", {})
    return Served(task, model, tokenizer, frame_of(tokenizer), device, longest, arguments)


def frame_of(tokenizer: PreTrainedTokenizerBase) -> Frame:
    framed: list[int] = tokenizer("a")["input_ids"]
    bare: list[int] = tokenizer("a", add_special_tokens=False)["input_ids"]
    places = range(len(framed) - len(bare) + 1)
    before = next((place for place in places if framed[place : place + len(bare)] == bare), 0)
    return Frame(before, framed[before + len(bare) :])


def begun_texts(
    tokenizer: PreTrainedTokenizerBase, texts: list[str], frame: Frame
) -> list[list[int]]:
    """The tokens of each text as a causal language model reads it before it goes on.

    They are the tokenizer's, without the tokens behind the text. A text that itself begins with
    the tokenizer's first tokens has them once.
    """
    begun = []
    for tokens in tokenizer(texts, verbose=False)["input_ids"]:
        begin = tokens[: frame.before]
        rest = tokens[frame.before : len(tokens) - len(frame.behind)]
        begun.append(rest if rest[: frame.before] == begin else begin + rest)
    return begun


def input_fn(request_body: str | bytes, content_type: str = "application/json") -> Answer:
    """Reads a request ``{"inputs": text or list of texts}``, or ``{"messages": …}``: a
    conversation, of which the model's chat template makes the text that it goes on with.
    """
    if content_type.partition(";")[0].strip() != "application/json":
        raise BadRequest(f"content type {content_type} can't be read; expected application/json")
    try:
        request = json.loads(request_body)
    except ValueError as error:
        raise BadRequest(f"the request is not valid JSON: {error}") from error
    if isinstance(request, dict) and "messages" in request:
        return {"messages": _conversation(request["messages"])}
    inputs = request.get("inputs") if isinstance(request, dict) else None
    texts = [inputs] if isinstance(inputs, str) else inputs
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise BadRequest(
            f'the request {request!r:.200} has no texts; expected {{"inputs": text or a list of '
            f'texts}}, or {{"messages": […]}}'
        )
    return {"texts": texts, "is_one": isinstance(inputs, str)}


def _conversation(messages: Any) -> list[dict[str, Any]]:
    if isinstance(messages, list) and messages:
        roles = [message.get("role") for message in messages if isinstance(message, dict)]
        if len(roles) == len(messages) and all(isinstance(role, str) for role in roles):
            return messages
    raise BadRequest(
        f'the messages {messages!r:.200} are no conversation; expected a list of {{"role": …, '
        f'"content": …}}'
    )


def predict_fn(request: Answer, model: Served) -> Any:
    """An object for one text or conversation, a list of objects for a list of texts."""
    if "messages" in request:
        return predict_tokens([_rendered(request["messages"], model)], model)[0]
    texts = request["texts"]
    answers = list[Answer]()
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        answers += predict(texts[first : first + TEXTS_AT_ONCE], model)
    return answers[0] if request["is_one"] else answers


def _rendered(messages: list[dict[str, Any]], model: Served) -> list[int]:
    """The tokens of the conversation up to where the model's answer begins."""
    if model.task != "causal-lm" or model.tokenizer.chat_template is None:
        raise BadRequest(
            'this model has no chat template, which "messages" need; expected {"inputs": …}'
        )
    try:
        tokens: Any = model.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False, **model.template_arguments
        )
    except Exception as error:  # a template raises errors of its own, and Jinja's
        raise BadRequest(f"the model's chat template refuses the messages: {error}") from error
    return list(tokens)


def output_fn(prediction: Any, accept: str = "application/json") -> str:
    del accept
    return json.dumps(prediction)


def predict(texts: list[str], model: Served) -> list[Answer]:
    """Gives for each text the most probable labels, tokens for its mask, or next tokens, with their
    probabilities.
    """
    tokenizer = model.tokenizer
    if model.task == "causal-lm":
        return predict_tokens(begun_texts(tokenizer, texts, model.frame), model)
    batch = tokenizer(
        texts, padding=True, truncation=True, max_length=model.longest, return_tensors="pt"
    )
    return _predict(batch.to(model.device), model)


def predict_tokens(begun: list[list[int]], model: Served) -> list[Answer]:
    """Predicts as ``predict`` does, for texts that are tokens."""
    cut = {"input_ids": [tokens[-model.longest :] for tokens in begun]}
    return _predict(model.tokenizer.pad(cut, return_tensors="pt").to(model.device), model)


def _predict(batch: Any, model: Served) -> list[Answer]:
    """The predictions for a batch, which has ids and mask, each [B, L]."""
    ids = batch["input_ids"]
    mask = batch["attention_mask"]
    with torch.inference_mode():
        logits = model.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    rows, name = _asked(model, logits, ids, mask)
    top = torch.softmax(rows.float(), dim=-1).topk(min(MOST_PREDICTIONS, rows.shape[-1]))
    return [
        {
            "predictions": [
                {"label": name(number), "score": round(score, 6)}
                for number, score in zip(*best, strict=True)
            ]
        }
        for best in zip(top.indices.tolist(), top.values.tolist(), strict=True)
    ]


def _asked(
    model: Served, logits: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, Callable[[int], str]]:
    """Returns for each text the logits that answer it, and how its outcomes are named.

    ``logits`` [B, L, V] or [B, C], ``ids`` [B, L], ``mask`` [B, L]; returns [B, V] or [B, C].
    """
    if model.task == "sequence-classification":
        labels = model.model.config.id2label or {}
        return logits, lambda number: str(labels.get(number, number))
    asked = torch.arange(ids.shape[1], device=ids.device) == mask.sum(dim=1, keepdim=True) - 1
    if model.task == "masked-lm":
        asked = ids == model.tokenizer.mask_token_id
        counts = asked.sum(dim=1).tolist()
        if any(count != 1 for count in counts):
            name = model.tokenizer.mask_token
            raise BadRequest(
                f"the texts have {counts} times {name}; expected one {name} in each text"
            )
    return logits[asked], lambda number: str(model.tokenizer.decode([number]))
