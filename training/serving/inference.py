"""Answers inference requests for a trained model. The container of an endpoint has no other file of this project.

PyTorch's inference container calls ``model_fn`` once, then ``input_fn``, ``predict_fn`` and ``output_fn`` per request.
Shapes of tensors: B texts, L tokens of the longest of them, C labels, V tokens of the vocabulary, N any number.
"""

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby, islice
from operator import itemgetter
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
JSON, JSON_LINES = "application/json", "application/jsonlines"
MOST_PREDICTIONS = 5
MOST_NEW_TOKENS = 1024
# A language model gives a probability for each token of its vocabulary at each place of each text.
TEXTS_AT_ONCE = 8
# AWS's container for Inferentia has this library.
NEURON_LIBRARY = "torch_neuronx"
# Inferentia runs compiled graphs of fixed shapes: a text is filled up to the next of these numbers of tokens.
NEURON_LENGTHS = (128, 512)
AUTO_CLASSES: Mapping[str, Any] = {
    "causal-lm": AutoModelForCausalLM,
    "masked-lm": AutoModelForMaskedLM,
    "sequence-classification": AutoModelForSequenceClassification,
}
Answer = dict[str, Any]


class BadRequest(ValueError):
    """The request does not have the form that the handler reads."""


class Served(NamedTuple):
    """A model in evaluation mode, with its tokenizer and task.

    ``logits`` takes tokens [B, L] and their mask [B, L], and gives [B, C], or [B, L, V] for a language model. A text is
    cut off after ``longest`` tokens.
    """

    task: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    device: torch.device
    logits: "Logits | NeuronGraphs"
    longest: int


class Logits(torch.nn.Module):
    """A model with one tensor as its output, as the compiler takes it."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Takes ``ids`` [B, L], ``mask`` [B, L] and returns [B, L, V] or [B, C]."""
        found: torch.Tensor = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        return found


class NeuronGraphs:
    """Compiles the model for one text of each of ``lengths``, in tokens, ascending. This takes minutes.

    Source: the AWS Neuron documentation, "PyTorch NeuronX Tracing API for Inference". Never run on the device.
    """

    def __init__(self, model: PreTrainedModel, padding: int, lengths: list[int]) -> None:
        # Other implementations look at the mask's values and leave out a mask of ones: the graph would lack it.
        model.set_attn_implementation("eager")
        trace = import_module(NEURON_LIBRARY).trace
        self._padding = padding
        self._graphs = {}
        for length in lengths:
            example = torch.full((1, length), padding), torch.ones(1, length, dtype=torch.long)
            self._graphs[length] = trace(Logits(model), example)

    def __call__(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Takes ``ids`` [B, L], ``mask`` [B, L] and returns [B, L, V] or [B, C]."""
        width = ids.shape[1]
        length = next(length for length in self._graphs if length >= width)
        fill = (0, length - width)
        ids = torch.nn.functional.pad(ids, fill, value=self._padding)
        mask = torch.nn.functional.pad(mask, fill)
        graph = self._graphs[length]
        logits = torch.cat([graph(ids[row : row + 1], mask[row : row + 1]) for row in range(len(ids))])
        return logits[:, :width] if logits.dim() == 3 else logits


def model_fn(model_dir: str) -> Served:
    if find_spec(NEURON_LIBRARY) is not None:
        return compile_for_neuron(load(Path(model_dir), torch.device("cpu")))
    return load(Path(model_dir), torch.device("cuda" if torch.cuda.is_available() else "cpu"))


def compile_for_neuron(served: Served) -> Served:
    lengths = neuron_lengths(served.longest)
    graphs = NeuronGraphs(served.model, int(served.tokenizer.pad_token_id), lengths)
    return served._replace(longest=lengths[-1], logits=graphs)


def neuron_lengths(longest: int) -> list[int]:
    """The lengths of graphs in tokens, ascending, for a model that takes ``longest``."""
    return sorted({min(length, longest) for length in NEURON_LENGTHS})


def load(folder: Path, device: torch.device) -> Served:
    """Loads the model in single precision, whatever precision it was trained in."""
    task = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))["task"]
    model = AUTO_CLASSES[task].from_pretrained(folder, dtype=torch.float32, trust_remote_code=False)
    model = model.to(device).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    tokenizer.padding_side = "right"
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Served(task, model, tokenizer, device, Logits(model), _longest(model, tokenizer))


def input_fn(request_body: str | bytes, content_type: str = JSON) -> list[Answer]:
    """Reads requests ``{"inputs": text or list of texts, "parameters": {…}}``: one as JSON, or JSON Lines."""
    text = request_body.decode() if isinstance(request_body, bytes) else request_body
    match content_type.partition(";")[0].strip():
        case "application/json":
            return [_request(text)]
        case "application/jsonlines":
            return [_request(line) for line in text.splitlines() if line.strip()]
    raise BadRequest(f"content type {content_type} can't be read; expected {JSON} or {JSON_LINES}")


def _request(text: str) -> Answer:
    try:
        request = json.loads(text)
    except ValueError as error:
        raise BadRequest(f"the request is not valid JSON: {error}") from error
    inputs = request.get("inputs") if isinstance(request, dict) else None
    texts = [inputs] if isinstance(inputs, str) else inputs
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        raise BadRequest(f'the request {text[:200]} has no texts; expected {{"inputs": text or a list of texts}}')
    return {"texts": texts, "is_one": isinstance(inputs, str), "parameters": request.get("parameters") or {}}


def predict_fn(requests: list[Answer], model: Served) -> list[Any]:
    """One answer per request: an object for one text, a list of objects for a list of texts."""
    asked = [(text, request["parameters"]) for request in requests for text in request["texts"]]
    answers: list[Answer] = []
    for parameters, group in groupby(asked, key=itemgetter(1)):
        texts = [text for text, _ in group]
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            answers += predict(texts[first : first + TEXTS_AT_ONCE], parameters, model)
    left = iter(answers)
    return [next(left) if request["is_one"] else list(islice(left, len(request["texts"]))) for request in requests]


def output_fn(prediction: list[Any], accept: str = JSON) -> str:
    """Several requests are answered with one line each, one request with one document without a line end."""
    del accept  # JSON Lines of one line are a JSON document
    return "\n".join(json.dumps(answer) for answer in prediction)


def predict(texts: list[str], parameters: Mapping[str, Any], model: Served) -> list[Answer]:
    """Gives for each text the most probable labels, tokens for its mask, or next tokens, with their probabilities."""
    batch = model.tokenizer(texts, padding=True, truncation=True, max_length=model.longest, return_tensors="pt").to(
        model.device
    )
    ids, mask = batch["input_ids"], batch["attention_mask"]
    with torch.inference_mode():
        logits = model.logits(ids, mask)
    rows, name = _asked(model, logits, ids, mask)
    answers: list[Answer] = [{"predictions": _most_probable(row, name)} for row in torch.softmax(rows.float(), dim=-1)]
    if model.task == "causal-lm" and parameters.get("max_new_tokens"):
        for answer, text in zip(answers, texts, strict=True):
            answer["generated_text"] = _generate(text, parameters, model)
    return answers


def _asked(
    model: Served, logits: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, Callable[[int], str]]:
    """Returns for each text the logits that answer it, and how its outcomes are named.

    ``logits`` [B, L, V] or [B, C], ``ids`` [B, L], ``mask`` [B, L]; returns [B, V] or [B, C].
    """
    rows = torch.arange(len(ids), device=ids.device)
    if model.task == "sequence-classification":
        labels = model.model.config.id2label or {}
        return logits, lambda number: str(labels.get(number, number))
    if model.task == "masked-lm":
        masked = ids == model.tokenizer.mask_token_id
        counts = masked.sum(dim=1).tolist()
        if any(count != 1 for count in counts):
            name = model.tokenizer.mask_token
            raise BadRequest(f"the texts have {counts} times {name}; expected one {name} in each text")
        return logits[masked], lambda number: str(model.tokenizer.decode([number]))
    return logits[rows, mask.sum(dim=1) - 1], lambda number: str(model.tokenizer.decode([number]))


def _most_probable(probabilities: torch.Tensor, name: Callable[[int], str]) -> list[Answer]:
    """Returns labels and scores of the largest ``probabilities`` [V] or [C]."""
    top = probabilities.topk(min(MOST_PREDICTIONS, len(probabilities)))
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return [{"label": name(number), "score": round(score, 6)} for number, score in pairs]


def _generate(text: str, parameters: Mapping[str, Any], model: Served) -> str:
    """Continues greedily: the same request has the same answer. It ends where the model takes no more tokens."""
    count = parameters["max_new_tokens"]
    if not isinstance(count, int) or not 1 <= count <= MOST_NEW_TOKENS:
        raise BadRequest(f"parameters.max_new_tokens is {count!r}; expected 1 to {MOST_NEW_TOKENS}")
    batch = model.tokenizer(text, truncation=True, max_length=model.longest, return_tensors="pt").to(model.device)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    room = model.longest - ids.shape[1]
    if room < 1:
        found = f"the text to continue has {ids.shape[1]} tokens or more"
        raise BadRequest(f"{found}; expected up to {model.longest - 1}")
    count = min(count, room)
    if isinstance(model.logits, NeuronGraphs):
        return str(model.tokenizer.decode(_extend(ids, count, model)[0], skip_special_tokens=True))
    with torch.inference_mode():
        made = model.model.generate(  # type: ignore[operator]
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=count,
            do_sample=False,
            pad_token_id=model.tokenizer.pad_token_id,
        )
    return str(model.tokenizer.decode(made[0], skip_special_tokens=True))


def _extend(ids: torch.Tensor, count: int, model: Served) -> torch.Tensor:
    """Adds the next tokens to ``ids`` [1, L]; returns [1, N].

    Each is a whole pass: graphs of fixed shapes keep nothing of earlier tokens.
    """
    end = model.model.generation_config.eos_token_id
    ends = end if isinstance(end, list) else [end]
    for _ in range(count):
        with torch.inference_mode():
            token = model.logits(ids, torch.ones_like(ids))[:, -1:].argmax(dim=-1)
        ids = torch.cat([ids, token], dim=1)
        if int(token) in ends:
            break
    return ids


def _longest(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return int(min(positions or tokenizer.model_max_length, tokenizer.model_max_length))
