"""What a model's folder tells without transformers: whether it is a model, and how long a sequence
its positions allow.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from traindyno.core.suite.choices import Task

MODEL_FILE = "config.json"
ADAPTER_FILE = "adapter_config.json"
TOKENIZER_FILE = "tokenizer_config.json"
WEIGHTS = (".safetensors", ".bin")
BASE_FIELD = "base_model_name_or_path"  # in an adapter's file
BASE_CHANNEL = "base"
# The positions of these models begin after the padding token's, so a sequence needs as many more.
POSITIONS_BEHIND_PADDING = {
    "camembert",
    "data2vec-text",
    "esm",
    "ibert",
    "lilt",
    "longformer",
    "luke",
    "markuplm",
    "mpnet",
    "prophetnet",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
}
# The names that config.json has for the number of positions; transformers knows them all by the
# first.
NAMES = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")
# The classes that transformers saves a model of each task as
ENDS_OF_HEADS = {
    Task.CAUSAL_LM: ("ForCausalLM", "LMHeadModel"),
    Task.MASKED_LM: ("ForMaskedLM",),
    Task.SEQUENCE_CLASSIFICATION: ("ForSequenceClassification",),
}
ENDS_OF_OTHERS = "ForConditionalGeneration"
WRITE_A_SCRIPT = "for another one write a script (task: script, docs/own-script.md)"
# transformers' default where config.json names none, for the models above
PADDING_TOKEN = 1


def model_problem(
    path: str, names: Sequence[str] | None, adapter: Mapping[str, Any] | None = None
) -> str | None:
    """Why a folder holds no model, or None.

    ``names`` are the files of the folder, or None for a file. ``adapter`` is the content of its
    adapter_config.json.
    """
    expected = "; expected a folder with a model as save_pretrained of transformers writes it"
    if names is None:
        is_gguf = path.lower().endswith(".gguf")
        kind = "GGUF file, made for inference" if is_gguf else "file"
        return f"{path} is a {kind}{expected}"
    if ADAPTER_FILE in names:
        stored = adapter or {}
        base = stored.get(BASE_FIELD)
        rank = stored.get("r")
        of_base = f" of {base}" if base else ""
        return (
            f"{path} has an adapter{of_base} ({ADAPTER_FILE}); expected it with training.adapter: "
            f"{{rank: {rank or '…'}}} in every cell, or a whole model: merge the "
            "adapter into it and save it, in Python: from peft import AutoPeftModelForCausalLM; "
            f'AutoPeftModelForCausalLM.from_pretrained("{path}").merge_and_unload()'
            '.save_pretrained("merged") (a classifier: AutoPeftModelForSequenceClassification), '
            "and save its tokenizer there too"
        )
    gguf = [name for name in names if name.lower().endswith(".gguf")]
    if MODEL_FILE in names and not (gguf and not any(name.endswith(WEIGHTS) for name in names)):
        return None
    if gguf:
        return f"{path} has a GGUF file ({gguf[0]}), made for inference{expected}"
    below = [
        f"{path}/{name.removesuffix(f'/{MODEL_FILE}')}"
        for name in names
        if name.endswith(f"/{MODEL_FILE}")
    ]
    meant = f": did you mean {' or '.join(below[:3])}?" if below else ""
    has = ", ".join(sorted(names)[:6]) or "nothing"
    return f"{path} has no {MODEL_FILE} (it has {has}){meant}{expected}"


def tasks_of_heads(config: Mapping[str, Any]) -> set[Task]:
    """The tasks of the classes that saved a model, by the content of its config.json."""
    return {
        task
        for name in architectures(config)
        for task, ends in ENDS_OF_HEADS.items()
        if name.endswith(ends)
    }


def architectures(config: Mapping[str, Any]) -> list[str]:
    architectures_value = config.get("architectures")
    return (
        [name for name in architectures_value if isinstance(name, str)]
        if isinstance(architectures_value, list)
        else []
    )


def other_model_problem(path: str, config: Mapping[str, Any], task: Task) -> str | None:
    """Why a language model of texts is not what this model is; None if it may be one."""
    names = [name for name in architectures(config) if name.endswith(ENDS_OF_OTHERS)]
    if task is Task.SEQUENCE_CLASSIFICATION or not names or not config.get("is_encoder_decoder"):
        return None
    return (
        f"{path} is a {names[0]}, an encoder with a decoder, of which {task} would train the "
        f"decoder alone; expected a model of texts alone: {WRITE_A_SCRIPT}"
    )


def reserved_positions(model_type: str, pad_token_id: int) -> int:
    """Position embeddings that no token of a sequence has."""
    if model_type not in POSITIONS_BEHIND_PADDING:
        return 0
    return (
        pad_token_id + 1 + (model_type == "prophetnet")
    )  # it predicts the token behind the last one, too


def longest_sequence(config: Mapping[str, Any]) -> int | None:
    """Most tokens of a sequence, by the content of a config.json or of its part about text; None if
    it names no positions.
    """
    text = config.get("text_config")
    text = text if isinstance(text, Mapping) else config
    positions = next((text[name] for name in NAMES if isinstance(text.get(name), int)), 0)
    padding = text.get("pad_token_id", PADDING_TOKEN)
    longest = int(positions) - reserved_positions(
        str(text.get("model_type", config.get("model_type"))),
        padding if isinstance(padding, int) else 0,
    )
    return longest if longest > 0 else None
