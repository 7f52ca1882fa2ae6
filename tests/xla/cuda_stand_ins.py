"""Empty libraries with NVIDIA's names, which export the symbols that a CUDA build of PyTorch
loads.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# PyTorch reads these when it is loaded, so they must be data. The others are functions that are
# never called.
DATA_SYMBOLS = re.compile(r"nvshmemi_(device_(lib_version|only_state|state)|ibgda_device_state)_d")
DATA_BYTES = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library with the name under which its symbols are versioned, if they are."""

    name: str
    symbols: str
    version: str | None = None


LIBRARIES = (
    Library(name="libcublas.so.12", symbols=r"cublas(?!Lt)", version="libcublas.so.12"),
    Library(name="libcublasLt.so.12", symbols=r"cublasLt", version="libcublasLt.so.12"),
    Library(name="libcudnn.so.9", symbols=r"cudnn", version="libcudnn.so.9"),
    Library(name="libcufft.so.11", symbols=r"cufft", version="libcufft.so.11"),
    Library(name="libcusparse.so.12", symbols=r"cusparse(?!Lt)", version="libcusparse.so.12"),
    Library(name="libcusparseLt.so.0", symbols=r"cusparseLt"),
    Library(name="libcurand.so.10", symbols=r"curand"),
    Library(name="libnccl.so.2", symbols=r"p?nccl"),
    Library(name="libnvshmem_host.so.3", symbols=r"nvshmem", version="NVSHMEM"),
)


def make_stand_ins(library_folder: Path) -> None:
    """The libraries are beside PyTorch's own, where the loader searches first."""
    wanted = sorted(set(_undefined_symbols(library_folder)))
    for library in LIBRARIES:
        pattern = re.compile(library.symbols)
        _build(library, [symbol for symbol in wanted if pattern.match(symbol)], library_folder)


def _undefined_symbols(library_folder: Path) -> Iterator[str]:
    for path in library_folder.glob("lib*.so"):
        if not path.name.startswith(("libtorch", "libc10")) or "linalg" in path.name:
            continue
        listing = subprocess.run(
            ["readelf", "--dyn-syms", "--wide", str(path)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for fields in map(str.split, listing.splitlines()):
            if len(fields) >= 8 and fields[6] == "UND":
                yield fields[7].partition("@")[0]


def _build(library: Library, symbols: Iterable[str], library_folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "stand_in.c")
        source.write_text("\n".join(_definition(symbol) for symbol in symbols))
        options = ["-shared", "-fPIC", "-w", f"-Wl,-soname,{library.name}"]
        if library.version is not None:
            versions = Path(scratch, "versions.map")
            versions.write_text(f"{library.version} {{ global: *; }};\n")
            options.append(f"-Wl,--version-script={versions}")
        subprocess.run(
            ["gcc", *options, str(source), "-o", str(library_folder / library.name)], check=True
        )


def _definition(symbol: str) -> str:
    return (
        f"char {symbol}[{DATA_BYTES}];"
        if DATA_SYMBOLS.fullmatch(symbol)
        else f"int {symbol}(void) {{ return 1; }}"
    )
