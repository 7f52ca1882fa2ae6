"""Wheels of one module, made in memory: what a requirements.txt can name without a network."""

import io
import zipfile

WHEEL = "tinywheel-1.0-py3-none-any.whl"


def tiny_wheel(value: int) -> bytes:
    """It installs ``tinywheel`` with this ``VALUE``."""
    return packed_wheel("tinywheel", "1.0", source=f"VALUE = {value}\n")


def packed_wheel(
    name: str, version: str, *, source: str = "", requires: str = "", tag: str = "py3-none-any"
) -> bytes:
    """A wheel of one module with this source, and with a requirement or none."""
    packed = io.BytesIO()
    about = f"{name}-{version}.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    with zipfile.ZipFile(packed, "w") as wheel:
        wheel.writestr(f"{name}.py", source)
        wheel.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
        )
        wheel.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}")
        wheel.writestr(f"{about}/RECORD", "")
    return packed.getvalue()
