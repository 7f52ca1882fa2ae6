"""Tokenises a folder and writes the process's largest memory, in bytes.

Arguments: the data, the output, a format.
"""

import sys
from pathlib import Path

from tests.training.word_tokenizer import word_tokenizer
from traindyno.core.run.workload import Dataset, Workload
from traindyno.core.suite.choices import DatasetFormat, Task
from training.data.prepare import prepare

data, out, kind = sys.argv[1:]
tokenizer = word_tokenizer(["<unk>", "word00001"], eos_token="<unk>")
asked = Workload(
    task=Task.CAUSAL_LM,
    examples=10**9,
    sequence_length=64,
    dataset=Dataset(path="data", format=DatasetFormat(kind)),
)
prepare(asked, tokenizer, Path(data), Path(out), packing=True)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
# Unlike ru_maxrss, this does not begin with the memory of the process that started this one.
peak_kib = int(status["VmHWM"].split()[0])
sys.stdout.write(f"{peak_kib * 1024}\n")
