"""A small configuration of each model family of transformers: same layers, few features, windows
shorter than a row.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedConfig
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from traindyno.core.suite.choices import Task

VOCABULARY = 96
SEQUENCE = 32
WINDOW = 8
FAMILIES: Mapping[Task, Iterable[str]] = {
    Task.CAUSAL_LM: sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
    Task.MASKED_LM: sorted(MODEL_FOR_MASKED_LM_MAPPING_NAMES),
}
# What the table can't know: values that a family computes from others, or that must fit together.
_EVERY_HEAD_HAS_KEYS = {"num_key_value_heads": 4}
_ROTATED = {"rope_type": "default", "rope_theta": 10000.0}
FITTED: Mapping[str, Mapping[str, Any]] = {
    **{kind: {"head_dim": 8} for kind in ("hunyuan_v1_dense", "hunyuan_v1_moe", "ministral")},
    "cohere_compass_text": {
        "rope_parameters": {"full_attention": _ROTATED, "sliding_attention": _ROTATED}
    },
    "dots1": {
        "num_key_value_heads": 4,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
    },
    "nemotron": {"head_dim": 8, "num_key_value_heads": 4},
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 64},
    },
    "esm": {"vocab_size": VOCABULARY, "mask_token_id": 4, "pad_token_id": 1},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "falcon_h1": {"mamba_d_ssm": 64},
    "dots3_note_text": {
        "head_dim": 16,
        "per_layer_config": {"1": {"num_attention_heads": 2, "num_key_value_heads": 2}},
    },
    "gemma3n_text": {"num_kv_shared_layers": 0, "intermediate_size": 64},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "reformer": {"axial_pos_embds": False},
    "xmod": {"default_language": "en_XX"},
    "zamba": {
        "num_hidden_layers": 4,
        "layers_block_type": ["mamba", "hybrid"] * 2,
        "attention_hidden_size": 64,
    },
    "zamba2": {
        "num_hidden_layers": 4,
        "layers_block_type": ["mamba", "hybrid"] * 2,
        "attention_hidden_size": 64,
    },
    "neomme": {"head_dim": 16},
    "esmc": _EVERY_HEAD_HAS_KEYS,
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "mamba2": {"num_heads": 8},
    "zaya": {"num_experts_per_tok": 1},
}


def _keys(value: int, names: str) -> dict[str, int]:
    return dict.fromkeys(names.split(), value)


SMALL: Mapping[str, int] = {
    **_keys(
        VOCABULARY,
        """
        vocab_size encoder_hash_byte_group_vocab decoder_vocab_size unpadded_vocab_size
        vocab_size_per_layer_input
        """,
    ),
    **_keys(
        64,
        """
        max_position_embeddings n_positions n_ctx max_seq_len context_length
        original_max_position_embeddings model_max_length max_source_positions max_target_positions
        intermediate_size decoder_ffn_dim encoder_ffn_dim ffn_dim n_inner d_inner dim_ff dff
        hidden_dim ffn_hidden_size dense_intermediate_size intermediate_size_mlp feed_forward_size
        output_embedding_size
        """,
    ),
    **_keys(
        32,
        """
        hidden_size d_model n_embd dim emb_dim embedding_size embedding_dim word_embed_proj_dim
        decoder_hidden_size mamba_d_ssm lru_width pooler_hidden_size prediction_head_size
        backbone_hidden_size attention_hidden_size true_hidden_size intra_bottleneck_size
        input_embedding_size d_latents moe_intermediate_size expert_ffn_hidden_size
        shared_expert_intermediate_size entity_emb_size shared_intermediate_size
        shared_experts_intermediate_size moe_shared_expert_intermediate_size
        """,
    ),
    **_keys(
        2,
        """
        num_hidden_layers n_layer n_layers num_layers decoder_layers encoder_layers
        num_decoder_layers num_encoder_layers num_layers_per_stack num_blocks
        num_self_attends_per_block num_key_value_heads num_kv_heads swa_num_key_value_heads
        linear_num_key_heads num_experts_per_tok num_experts_per_token moe_topk moe_k top_k_experts
        n_group num_expert_group
        """,
    ),
    **_keys(
        4,
        """
        num_attention_heads n_head n_heads num_heads decoder_attention_heads encoder_attention_heads
        attention_heads num_encoder_attention_heads num_decoder_attention_heads
        swa_num_attention_heads linear_num_heads linear_num_value_heads index_n_heads
        num_self_attention_heads num_cross_attention_heads num_experts num_local_experts
        n_routed_experts moe_num_experts zero_expert_num
        """,
    ),
    **_keys(
        8,
        """
        head_dim d_head dim_head v_head_dim swa_head_dim linear_key_head_dim linear_value_head_dim
        linear_head_dim attention_head_size q_lora_rank kv_lora_rank o_lora_rank index_head_dim
        qk_nope_head_dim qk_rope_head_dim router_hidden_size hidden_size_per_layer_input laurel_rank
        kv_channels rotary_dim gated_norm_rank embedding_rank hc_lowrank adapter_rank
        attention_head_dim mamba_d_state state_size ssm_state_size time_step_rank mamba_dt_rank
        mamba_d_head mamba_head_dim chunk_size mamba_chunk_size block_size num_query_groups
        mamba_n_heads mamba_num_heads entity_vocab_size prompt_length pronunciation_embed_dim
        shape_embed_dim prompt_mid_dim query_pre_attn_scalar
        """,
    ),
    **_keys(
        1,
        """
        topk_group mamba_n_groups mamba_ngroups first_k_dense_replace num_dense_layers n_groups
        max_window_layers num_random_blocks
        """,
    ),
    **_keys(
        WINDOW,
        """
        sliding_window window_size attention_chunk_size local_attention attention_window_size
        sliding_window_size attention_window keep_window_size local_attn_chunk_length
        lsh_attn_chunk_length local_attention_window_len segment_means_seq_len num_landmarks
        index_topk index_block_size
        """,
    ),
}


def small_config(kind: str) -> PreTrainedConfig:
    """Raises what transformers raises where the values make no configuration."""
    config: PreTrainedConfig = AutoConfig.for_model(kind, **small_values(kind))
    return config


def small_values(kind: str) -> dict[str, Any]:
    """The values for ``workload.model.config``, without ``model_type``."""
    return {**_smaller(CONFIG_MAPPING[kind]()), **FITTED.get(kind, {})}


def _smaller(plain: PreTrainedConfig) -> dict[str, Any]:
    smaller: dict[str, Any] = {}
    for name, value in plain.to_dict().items():
        inner = getattr(plain, name, None) if isinstance(value, dict) else None
        if isinstance(inner, PreTrainedConfig):
            smaller[name] = {**_smaller(inner), "model_type": inner.model_type}
        elif name in SMALL and isinstance(value, int) and not isinstance(value, bool):
            smaller[name] = SMALL[name]
        elif name.endswith("token_id") and isinstance(value, int):
            smaller[name] = min(value, VOCABULARY - 1)
    if "sliding_window" in plain.to_dict():
        smaller["sliding_window"] = WINDOW
    if "use_sliding_window" in plain.to_dict():
        smaller["use_sliding_window"] = True
    if "kv_lora_rank" in smaller:
        smaller |= _EVERY_HEAD_HAS_KEYS
    kinds = list(dict.fromkeys(plain.to_dict().get("layer_types") or ()))
    if len(kinds) > 1:
        smaller |= {"layer_types": kinds, "num_hidden_layers": len(kinds)}
    return smaller
