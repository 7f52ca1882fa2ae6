"""Our tensor plans of model types for which transformers has none."""

from collections.abc import Mapping

from training.models.tensor_plan import TensorPlan, plan_of_blocks

LIKE_BERT = ("bert", "camembert", "electra", "roberta", "xlm-roberta")
GPT2 = plan_of_blocks(
    "h.*",
    columns="attn.c_attn mlp.c_fc",
    rows="attn.c_proj mlp.c_proj",
    per_rank="attn.num_heads attn.split_size",
    fused={"attn.c_attn": 3},
)
GPTJ = plan_of_blocks(
    "h.*",
    columns="attn.q_proj attn.k_proj attn.v_proj mlp.fc_in",
    rows="attn.out_proj mlp.fc_out",
    per_rank="attn.num_attention_heads",
)
GPT_NEO = plan_of_blocks(
    "h.*",
    columns="attn.attention.q_proj attn.attention.k_proj attn.attention.v_proj mlp.c_fc",
    rows="attn.attention.out_proj mlp.c_proj",
    per_rank="attn.attention.num_heads",
)
BERT = plan_of_blocks(
    "encoder.layer.*",
    columns="attention.self.query attention.self.key attention.self.value intermediate.dense",
    rows="attention.output.dense output.dense",
    per_rank="attention.self.num_attention_heads attention.self.all_head_size",
)
ALBERT = plan_of_blocks(
    "encoder.albert_layer_groups.*.albert_layers.*",
    columns="attention.query attention.key attention.value ffn",
    rows="attention.dense ffn_output",
    per_rank="attention.num_attention_heads attention.all_head_size",
)
MODERNBERT = plan_of_blocks(
    "layers.*",
    columns="attn.Wqkv mlp.Wi",
    rows="attn.Wo mlp.Wo",
    fused={"attn.Wqkv": 3, "mlp.Wi": 2},
)
PLANS: Mapping[str, TensorPlan] = {
    "gpt2": GPT2,
    "gptj": GPTJ,
    "gpt_neo": GPT_NEO,
    "albert": ALBERT,
    "modernbert": MODERNBERT,
    **dict.fromkeys(LIKE_BERT, BERT),
}
