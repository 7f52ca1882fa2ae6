"""The code of a container: it prepares data or trains a run's model, and writes the step log.

A docstring gives a tensor's shape in brackets after its name, ``labels`` [B, L], also below Args,
or after "returns". An array of NumPy is a tensor here. The letters of dimensions:

A  batches that are accumulated in a step
B  samples of a batch (a micro-batch in a stage of a pipeline)
C  classes of a sequence classification
D  hidden size
I  features that a layer takes
L  tokens of a sequence, with the padding of its batch
N  any number
O  features that a layer gives
S  samples of a step: of all its batches on all ranks
T  tokens of all sequences of a dataset
V  vocabulary

[] is the shape of a single number, [...] is any shape.
"""

import sys

# transformers' trainer imports peft, and peft imports bitsandbytes wherever it is installed, which
# takes seconds in each process. Where a model has weights of 4 bits, it is shown again.
sys.modules.setdefault("bitsandbytes", None)  # type: ignore[arg-type]
