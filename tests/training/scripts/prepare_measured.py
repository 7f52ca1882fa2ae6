"""Tokenises a folder and writes the process's largest memory, in bytes. Arguments: the data, the output, a format."""

import sys
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from traindyno.core.suite.choices import DatasetFormat, Task
from traindyno.core.suite.workload import Dataset, Workload
from training.data.prepare import prepare

data, out, kind = sys.argv[1:]
model = Tokenizer(models.WordLevel({"<unk>": 0, "word00001": 1}, unk_token="<unk>"))
model.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=model, unk_token="<unk>", eos_token="<unk>")
asked = Workload(
    task=Task.CAUSAL_LM, examples=10**9, sequence_length=64, dataset=Dataset(path="data", format=DatasetFormat(kind))
)
prepare(asked, tokenizer, Path(data), Path(out), packing=True)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
# Unlike ru_maxrss, this does not begin with the memory of the process that started this one.
peak_kib = int(status["VmHWM"].split()[0])
sys.stdout.write(f"{peak_kib * 1024}\n")
