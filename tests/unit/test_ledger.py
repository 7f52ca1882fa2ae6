"""The four claims files against what tests/data/posts.json keeps of the posts' own text, and the
figures in them that the lab itself can check.

It keeps a digest of each sentence and of each quote of ``slices/test_posts.py``, which was found in
the post word for word, and the numbers of the post but those of sections and of lines of code.
"""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from tests.unit.run_samples import known
from traindyno.core.instances.instance_types import InstanceType, find_instance_type
from traindyno.slices.claims.suite import Claims, parse_claims

ROOT = Path(__file__).parents[2]
POSTS = json.loads((ROOT / "tests" / "data" / "posts.json").read_text(encoding="utf-8"))
SAME_CHARACTER = str.maketrans("\u2019\u2018\u201c\u201d\u2013\u2014\u2212", "''\"\"---")
# It leaves out parts of names (GPT-2, ml.p4d.24xlarge, FP16).
NUMBER = re.compile(r"(?<![\w.\[-])(?:v(?=\d))?(\d+(?:[.,]\d+)*)(?![\w\]]|\.\d)")
DATE = "a date of the post"
OTHERS = "of other models, products or people"
NO_FIGURES = {
    "gpt2-compiler": {
        "31": DATE,
        "2023": DATE,
        "25": DATE,
        "2024": DATE,
        "3": "the name of a notebook's kernel",
    },
    "gptj-parallel": {"12": DATE, "2023": DATE},
    "albert-scaling": {"100": OTHERS},
    "bert-trainium": {"0": "the name of a label", "7": OTHERS},
}


def ledger(pack: str) -> Claims:
    return parse_claims(
        yaml.safe_load((ROOT / "suites" / pack / "claims.yaml").read_text(encoding="utf-8"))
    )


def plain(text: str) -> str:
    """The text without white space, and with one kind of dash and quote: the posts' line breaks are
    the web page's.
    """
    return re.sub(r"\s+", "", text.translate(SAME_CHARACTER))


def sentences(claims: Claims) -> Iterator[tuple[str, str]]:
    yield from ((claim.claim_id, claim.sentence or "") for claim in claims.claims)
    yield from ((statement.statement_id, statement.sentence) for statement in claims.statements)


def digest(sentence: str | None) -> str:
    return sha256(plain(sentence or "").encode()).hexdigest()[:16]


@pytest.mark.parametrize("pack", POSTS)
def test_every_sentence_is_in_the_post_word_for_word(pack: str) -> None:
    """A digest that differs is of a sentence that nobody has compared with the post."""
    quoted = {name: digest(sentence) for name, sentence in sentences(ledger(pack))}
    assert quoted == POSTS[pack]["sentences"]


@pytest.mark.parametrize("pack", POSTS)
def test_every_number_of_the_post_is_in_a_sentence_of_the_ledger(pack: str) -> None:
    """A number that is no figure is left out with its reason: this defines "every figure"."""
    quoted = {
        number for _, sentence in sentences(ledger(pack)) for number in NUMBER.findall(sentence)
    }
    assert {*POSTS[pack]["numbers"]} - quoted == set(NO_FIGURES[pack])


def test_every_claim_and_statement_has_a_name_of_its_own() -> None:
    for pack in POSTS:
        names = [name for name, _ in sentences(ledger(pack))]
        assert len(names) == len(set(names)), pack


def instance(name: str) -> InstanceType:
    return known(find_instance_type(name))


def published(pack: str) -> dict[str, float]:
    return {claim.claim_id: claim.published for claim in ledger(pack).claims}


def test_specifications_equal_the_labs_table() -> None:
    trainium = published("bert-trainium")
    albert = published("albert-scaling")
    gpt2 = published("gpt2-compiler")
    per_chip = trainium["cores-per-chip"]
    for name in ("trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge"):
        instance_type = instance(f"ml.{name}")
        key = name.replace(".", "-")
        assert instance_type.devices_per_instance == trainium[f"{key}-chips"] * per_chip
        assert known(instance_type.device.memory_gb) * per_chip == trainium["memory-per-chip"]
        assert (
            known(instance_type.device.memory_gb) * instance_type.devices_per_instance
            == trainium[f"{key}-memory"]
        )
        assert (instance_type.vcpus, instance_type.memory_gib) == (
            trainium[f"{key}-vcpus"],
            trainium[f"{key}-host-memory"],
        )
        # the statement on EFA
        assert instance_type.has_rdma == (name != "trn1.2xlarge")
    assert instance("ml.p4d.24xlarge").vcpus == albert["vcpus"]
    for nodes in (2, 4, 16):
        assert (
            nodes * (instance("ml.p4d.24xlarge").devices_per_instance or 0)
            == albert[f"gpus-{nodes}-nodes"]
        )
    assert instance("ml.g4dn.12xlarge").devices_per_instance == gpt2["gpus"]


def test_the_peak_printed_in_the_post_is_not_todays() -> None:
    instance_type = instance("ml.trn1.32xlarge")
    # 32 cores of 95 TFLOPS, as the claim's note says
    assert instance_type.devices_per_instance * known(
        instance_type.device.half_flops
    ) == pytest.approx(3.04e15)
    assert published("bert-trainium")["peak-compute"] == 3.4
