"""Which tokens a suite needs, under which content keys, and which of them the lab has already."""

from collections.abc import Sequence
from dataclasses import replace

from traindyno.aws.data_listing import DataListing
from traindyno.core.errors import SuiteRefused
from traindyno.core.suite.preparation import (
    Origin,
    TokenSet,
    needed_tokens,
    preparation_instance,
    preparation_run,
    terms_of,
    tokens_key,
)
from traindyno.core.suite.suite import Cell, Suite, Workload
from traindyno.sagemaker.images import ImageUnavailable, select_image_uri
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.request import is_in_s3
from traindyno.store.token_cache import USABLE_SECONDS, TokenCache

# Its manifest tells a folder that was tokenised by its owner.
TOKENISED = "train/traindyno-data.json"
PINNED = "by its revision"


def plan_tokens(
    suite: Suite,
    cells: Sequence[Cell],
    *,
    execution_id: str,
    settings: JobSettings,
    listing: DataListing,
    cache: TokenCache,
    now: float,
) -> tuple[TokenSet, ...]:
    """SuiteRefused where the dataset's or tokenizer's prefix can't be listed or is empty."""
    wanted = needed_tokens(suite, cells)
    dataset = suite.workload.dataset
    if not wanted or dataset is None or dataset.path is None:
        return ()
    if is_in_s3(dataset.path):
        data, names = listing.content("workload.dataset.path", dataset.path)
        if TOKENISED in names:
            return ()
    else:
        data = PINNED if dataset.revision else execution_id
    origin = Origin(
        code=str(settings.source_s3_uri).rpartition("/")[2],
        image=_image(suite, cells, wanted[0], settings),
        data=data,
        tokenizer=_tokenizer_content(suite.workload, execution_id, listing),
    )
    keyed = [replace(each, key=tokens_key(suite.workload, packing=each.packing, origin=origin)) for each in wanted]
    oldest = now - USABLE_SECONDS
    return tuple(replace(each, is_ready=cache.find(each.key, oldest=oldest) is not None) for each in keyed)


def _tokenizer_content(workload: Workload, execution_id: str, listing: DataListing) -> str:
    """What is on the Hub without a revision may change, so that its tokens are good for this execution only."""
    tokenizer = workload.tokenizer
    if tokenizer is not None and tokenizer.path is None:
        return "trained on the data"
    source, field = (tokenizer, "tokenizer") if tokenizer is not None else (workload.model, "model")
    assert source is not None
    assert source.path is not None, "a model from a config brings no tokenizer, which PlanSuite has checked"
    if is_in_s3(source.path):
        return listing.content(f"workload.{field}.path", source.path)[0]
    return PINNED if source.revision else execution_id


def _image(suite: Suite, cells: Sequence[Cell], token_set: TokenSet, settings: JobSettings) -> str:
    instance = preparation_instance(suite, cells)
    run = preparation_run(token_set, instance=instance, execution_id="")
    try:
        return select_image_uri(run.cell.settings, terms_of(run, suite).workload, settings)
    except ImageUnavailable as error:
        raise SuiteRefused([str(error)]) from error
