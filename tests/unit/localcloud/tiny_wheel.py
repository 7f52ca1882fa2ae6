"""A wheel of one module, made in memory: what a requirements.txt can name without a network."""

import io
import zipfile

WHEEL = "tinywheel-1.0-py3-none-any.whl"


def tiny_wheel(value: int) -> bytes:
    """It installs ``tinywheel`` with this ``VALUE``."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as wheel:
        wheel.writestr("tinywheel.py", f"VALUE = {value}\n")
        wheel.writestr("tinywheel-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tinywheel\nVersion: 1.0\n")
        wheel.writestr("tinywheel-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any")
        wheel.writestr("tinywheel-1.0.dist-info/RECORD", "")
    return packed.getvalue()
