"""How long a sequence a model's position embeddings allow, from the values of its configuration."""

from collections.abc import Mapping
from typing import Any

# The positions of these models begin after the padding token's, so a sequence needs as many more.
POSITIONS_BEHIND_PADDING = {
    "camembert", "data2vec-text", "esm", "ibert", "lilt", "longformer", "luke", "markuplm", "mpnet", "prophetnet",
    "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
# The names that config.json has for the number of positions; transformers knows them all by the first.
NAMES = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")
# transformers' default where config.json names none, for the models above
PADDING_TOKEN = 1


def reserved_positions(model_type: str, pad_token_id: int) -> int:
    """Position embeddings that no token of a sequence has."""
    if model_type not in POSITIONS_BEHIND_PADDING:
        return 0
    return pad_token_id + 1 + (model_type == "prophetnet")  # it predicts the token behind the last one, too


def longest_sequence(config: Mapping[str, Any]) -> int | None:
    """In tokens, by the content of a config.json, or of its part about text; None if it names no positions."""
    text = config.get("text_config")
    text = text if isinstance(text, Mapping) else config
    positions = next((text[name] for name in NAMES if isinstance(text.get(name), int)), 0)
    padding = text.get("pad_token_id", PADDING_TOKEN)
    longest = int(positions) - reserved_positions(
        str(text.get("model_type", config.get("model_type"))), padding if isinstance(padding, int) else 0
    )
    return longest if longest > 0 else None
