"""Fails the build if a module that jobs on every kind of instance import can't be imported.

Transformers loads its modules on first use, so the modules that use other packages are named one by
one.
"""

import importlib

MODULES = (
    "sagemaker_pytorch_container.training",
    "cattrs.strategies",
    "datasets",
    "huggingface_hub.hf_api",
    "pyarrow.csv",
    "pyarrow.parquet",
    "s3torchconnector",
    "safetensors",
    "tokenizers",
    "transformers.modeling_utils",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.optimization",
    "transformers.trainer_callback",
)

if __name__ == "__main__":
    for module in MODULES:
        importlib.import_module(module)
