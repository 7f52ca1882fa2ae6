"""Tokenises a folder and writes the process's largest memory, in bytes. Arguments: the data, the output, a format."""

import resource
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from traindyno.core.suite.choices import DatasetFormat, Task
from traindyno.core.suite.workload import Dataset, Workload
from training.data import rows
from training.data.prepare import prepare

data, out, kind = sys.argv[1:]
# Smaller than the data: what is measured is whether the memory grows with the data.
rows.CSV_BLOCK_BYTES = 2**20
model = Tokenizer(models.WordLevel({"<unk>": 0, "word00001": 1}, unk_token="<unk>"))
model.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=model, unk_token="<unk>", eos_token="<unk>")
asked = Workload(
    task=Task.CAUSAL_LM,
    examples=10**9,
    sequence_length=64,
    dataset=Dataset(path="data", format=DatasetFormat(kind)),
)
prepare(asked, tokenizer, Path(data), Path(out), packing=True)
sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}\n")
