"""Where GPT-J's pretrained files are: on the Hub, in a folder, in a channel, or in S3, from which
they are copied.
"""

import os
import tempfile
from argparse import Namespace
from pathlib import Path
from urllib.parse import urlparse

import smdistributed.modelparallel.torch as smp

SCRATCH = Path(tempfile.gettempdir()) / "gptj-weights"


def weights_folder(arguments: Namespace) -> str:
    """Hub id, or a folder of this host; the first process of each host copies what is in S3."""
    if arguments.load_from_s3:
        return os.environ["SM_CHANNEL_MODEL"]
    place = str(arguments.model_name_or_path)
    if not place.startswith("s3://"):
        return place
    if smp.local_rank() == 0:
        copy_from_s3(place, SCRATCH)
    smp.barrier()
    return str(SCRATCH)


def copy_from_s3(uri: str, folder: Path) -> None:
    """All objects below the prefix, as files of the folder.

    Raises ValueError where there is none.
    """
    import boto3  # noqa: PLC0415 -- part of AWS's images; a model from elsewhere needs none

    parts = urlparse(uri)
    bucket = parts.netloc
    prefix = parts.path.lstrip("/")
    client = boto3.client("s3", region_name=os.environ.get("AWS_REGION"))
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = [
        row["Key"]
        for page in pages
        for row in page.get("Contents", [])
        if not row["Key"].endswith("/")
    ]
    if not keys:
        raise ValueError(
            (
                "model_name_or_path {!r}: expected a prefix that holds a model's files, found none"
            ).format(uri)
        )
    for key in keys:
        path = folder / key[len(prefix) :].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        client.download_file(bucket, key, str(path))
