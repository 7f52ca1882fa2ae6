"""Numbers of a model's configuration: of its text, if it also reads images or sound."""

from huggingface_hub.errors import StrictDataclassError
from transformers import PreTrainedConfig

from traindyno.core.run.saved_model import reserved_positions

# The errors that transformers raises for values from which it can't build a configuration or a
# model.
NOT_BUILT = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RuntimeError,
    ZeroDivisionError,
    StrictDataclassError,
)


def text_of(config: PreTrainedConfig) -> PreTrainedConfig:
    """The part that describes the model of text; the configuration itself for most models."""
    try:
        return config.get_text_config()
    except ValueError:  # it has several
        return config


def most_positions(config: PreTrainedConfig) -> int | None:
    """The longest sequence of the model; None if any length will do. XLNet says so with -1."""
    positions = count_in(text_of(config), "max_position_embeddings")
    return positions if positions is not None and positions > 0 else None


def needed_positions(config: PreTrainedConfig, sequence_length: int) -> int:
    """How many position embeddings a sequence of this many tokens needs."""
    text = text_of(config)
    return sequence_length + reserved_positions(
        text.model_type, getattr(text, "pad_token_id", None) or 0
    )


def positions_problem(config: PreTrainedConfig, sequence_length: int | None) -> str | None:
    """Why the model has too few positions for sequences of this many tokens."""
    positions = most_positions(config)
    if sequence_length is None or positions is None:
        return None
    more = needed_positions(config, sequence_length) - sequence_length
    if sequence_length + more <= positions:
        return None
    why = f" ({config.model_type} needs {more} more than the tokens of a sequence)" if more else ""
    expected = f"expected at most {positions - more} tokens"
    return (
        f"{sequence_length} tokens need more positions than the model's {positions}{why}; "
        f"{expected}"
    )


def count_in(config: PreTrainedConfig, name: str) -> int | None:
    try:
        value = getattr(config, name, None)
    except RuntimeError:  # transformers': it differs from layer to layer
        return None
    return value if isinstance(value, int) else None
