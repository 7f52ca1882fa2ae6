"""Archives as S3 holds them: a job's source, a model."""

import io
import tarfile
from collections.abc import Mapping


def tar_gz(files: Mapping[str, str | bytes]) -> bytes:
    """The content of each file by its name."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()
