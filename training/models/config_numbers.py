"""Numbers of a model's configuration: of its text, if it also reads images or sound."""

from huggingface_hub.errors import StrictDataclassError
from transformers import PreTrainedConfig

# The errors that transformers raises for values from which it can't build a configuration or a model.
NOT_BUILT = (ValueError, TypeError, KeyError, AttributeError, RuntimeError, ZeroDivisionError, StrictDataclassError)
# The positions of these models begin after the padding token's, so a sequence needs as many more.
POSITIONS_BEHIND_PADDING = {
    "camembert", "data2vec-text", "esm", "ibert", "lilt", "longformer", "luke", "markuplm", "mpnet", "prophetnet",
    "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip


def text_of(config: PreTrainedConfig) -> PreTrainedConfig:
    """The part that describes the model of text; the configuration itself for most models."""
    try:
        return config.get_text_config()
    except ValueError:  # it has several
        return config


def most_positions(config: PreTrainedConfig) -> int | None:
    """None if any length will do. XLNet says so with -1."""
    positions = count_in(text_of(config), "max_position_embeddings")
    return positions if positions is not None and positions > 0 else None


def needed_positions(config: PreTrainedConfig, sequence_length: int) -> int:
    """How many position embeddings a sequence of this many tokens needs."""
    text = text_of(config)
    if text.model_type in POSITIONS_BEHIND_PADDING:
        more = 1 if text.model_type == "prophetnet" else 0  # it predicts the token behind the last one, too
        return sequence_length + (text.pad_token_id or 0) + 1 + more
    return sequence_length


def count_in(config: PreTrainedConfig, name: str) -> int | None:
    try:
        found = getattr(config, name, None)
    except RuntimeError:  # transformers': it differs from layer to layer
        return None
    return found if isinstance(found, int) else None
