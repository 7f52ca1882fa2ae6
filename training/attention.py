"""Attention over sequences that all have one length: no padding, so no mask to build and to check in every step."""

from transformers import AttentionInterface, PreTrainedConfig, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

# Registered without a mask function, so that transformers passes no mask and PyTorch may choose its fastest kernel.
UNPADDED = "traindyno_unpadded"

AttentionInterface.register(UNPADDED, sdpa_attention_forward)


def attend_without_mask(model: PreTrainedModel) -> None:
    """Models whose attention is their own (GPT-J's) keep it, and their mask."""
    if model.config._attn_implementation == "sdpa":
        for module in model.modules():
            config = getattr(module, "config", None)
            if isinstance(config, PreTrainedConfig):
                config._attn_implementation = UNPADDED
