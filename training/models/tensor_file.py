"""A safetensors file that is written tensor by tensor.

Its header comes first, because names and shapes are known.

Tensors have any shape [...].
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import torch

# Tensors are written in this order: large elements come first, so that all of them are aligned.
TYPE_NAMES = {
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
METADATA = {"format": "pt"}
ALIGNMENT_BYTES = 8
PART_BYTES = 1 << 20


class TensorFile:
    """Byte for byte, it is the file that ``safetensors.torch.save_file`` writes for the same
    tensors.

    ``tensors`` give names, types and shapes; they may be on the meta device. The file is complete
    when ``write`` was called once for each of them, in any order.
    """

    def __init__(self, path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
        """Writes the header. Raises ValueError for a type that no trained model has."""
        self.path = path
        self._tensors = tensors
        self._begins: dict[str, int] = {}  # of a tensor's bytes behind the header
        header_fields: dict[str, object] = {"__metadata__": METADATA}
        end = 0
        for name, tensor in _in_order(tensors):
            begin = end
            end = end + byte_count(tensor)
            self._begins[name] = begin
            header_fields[name] = {
                "dtype": TYPE_NAMES[tensor.dtype],
                "shape": list(tensor.shape),
                "data_offsets": [begin, end],
            }
        text = json.dumps(header_fields, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % ALIGNMENT_BYTES)
        header = struct.pack("<Q", len(text)) + text
        self._data_begin = len(header)
        with path.open("wb") as file:
            file.write(header)
            file.truncate(self._data_begin + end)

    def write(self, name: str, tensor: torch.Tensor) -> None:
        """Writes a tensor, which is on the CPU. Raises ValueError if the header says otherwise.

        A tensor that is not contiguous is copied in parts, never as a whole.
        """
        expected = self._tensors[name]
        if (tensor.dtype, tensor.shape) != (expected.dtype, expected.shape):
            raise ValueError(
                f"{name} is {tensor.dtype} of shape {tuple(tensor.shape)}; expected "
                f"{expected.dtype} of shape {tuple(expected.shape)}, as the header of "
                f"{self.path.name} says"
            )
        parts: tuple[torch.Tensor, ...] = (tensor,)
        if tensor.ndim and not tensor.is_contiguous():
            row_bytes = byte_count(tensor) // max(len(tensor), 1)
            parts = torch.split(tensor, max(1, PART_BYTES // max(row_bytes, 1)))
        with self.path.open("r+b") as file:
            file.seek(self._data_begin + self._begins[name])
            for part in parts:
                file.write(part.contiguous().view(-1).view(torch.uint8).numpy().data)


def byte_count(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _in_order(tensors: Mapping[str, torch.Tensor]) -> list[tuple[str, torch.Tensor]]:
    types = list(TYPE_NAMES)
    for name, tensor in tensors.items():
        if tensor.dtype not in TYPE_NAMES:
            raise ValueError(
                f"{name} is {tensor.dtype}; expected one of {', '.join(map(str, types))}"
            )
    return sorted(tensors.items(), key=lambda named: (types.index(named[1].dtype), named[0]))
