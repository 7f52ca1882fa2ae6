import io
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import ANY, Stubber

from tests.unit.stubbed import stubbed
from traindyno.api.local_paths import StagingRefused, travel_lines
from traindyno.api.staging import StagingArea, renew_staged
from traindyno.aws.objects import Objects
from traindyno.travelling_files import allowed_paths

CHECKPOINT = (
    "config.json",
    "model.safetensors",
    "optimizer.pt",
    "rng_state_1.pth",
    "scheduler.pt",
    "trainer_state.json",
    "training_args.bin",
    "global_step12/zero_pp_rank_0_optim_states.pt",
)


@pytest.fixture
def s3() -> Iterator[tuple[Any, Stubber]]:
    with stubbed("s3") as (client, stubber):
        yield client, stubber


def stage(client: Any, beside: Path, told: list[str] | None = None) -> StagingArea:
    return StagingArea(
        beside=beside, s3=client, bucket="results", tell=(told if told is not None else []).append
    )


def suite_with(**workload: Any) -> dict[str, Any]:
    return {"name": "x", "workload": workload}


def test_a_local_file_becomes_an_object_named_by_its_content(
    tmp_path: Path, s3: tuple[Any, Stubber]
) -> None:
    client, stubber = s3
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    stubber.add_response("list_objects_v2", {}, {"Bucket": "results", "Prefix": ANY})
    stubber.add_response(
        "put_object", {}, {"Bucket": "results", "Key": ANY, "Body": ANY, "ChecksumAlgorithm": ANY}
    )
    told: list[str] = []
    staged = stage(client, tmp_path, told).stage_suite(
        suite_with(dataset={"path": "data.csv", "format": "csv"})
    )
    path = staged["workload"]["dataset"]["path"]
    assert path.startswith("s3://results/data/")
    assert path.endswith("/")
    assert "1 file " in told[0]


def test_a_chat_template_is_sent_and_a_name_of_the_tokenizer_stays(
    tmp_path: Path, s3: tuple[Any, Stubber]
) -> None:
    client, stubber = s3
    (tmp_path / "chat.jinja").write_text("{{ messages }}")
    stubber.add_response("list_objects_v2", {}, {"Bucket": "results", "Prefix": ANY})
    stubber.add_response(
        "put_object", {}, {"Bucket": "results", "Key": ANY, "Body": ANY, "ChecksumAlgorithm": ANY}
    )
    for named, begin in (("chat.jinja", "s3://results/data/"), ("tool_use", "tool_use")):
        dataset = {"path": "s3://elsewhere/chats/", "chat_template": named}
        staged = stage(client, tmp_path).stage_suite(suite_with(dataset=dataset))
        assert staged["workload"]["dataset"]["chat_template"].startswith(begin)


def test_an_existing_object_is_sent_again_only_before_it_expires(
    tmp_path: Path, s3: tuple[Any, Stubber]
) -> None:
    client, stubber = s3
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "train.py").write_text("print(1)")
    stubber.add_response("list_objects_v2", {}, {"Bucket": "results", "Prefix": ANY})
    stubber.add_response("put_object", {}, {"Bucket": "results", "Key": ANY, "Body": ANY})
    document = suite_with(task="script", source="own", entry_point="train.py")
    first = stage(client, tmp_path).stage_suite(document)["workload"]["source"]
    key = first.removeprefix("s3://results/")
    young = {"Key": key, "LastModified": datetime.now(UTC) - timedelta(days=29)}
    stubber.add_response(
        "list_objects_v2", {"Contents": [young]}, {"Bucket": "results", "Prefix": key}
    )
    assert stage(client, tmp_path).stage_suite(document)["workload"]["source"] == first
    old = {"Key": key, "LastModified": datetime.now(UTC) - timedelta(days=31)}
    stubber.add_response(
        "list_objects_v2", {"Contents": [old]}, {"Bucket": "results", "Prefix": key}
    )
    stubber.add_response("put_object", {}, {"Bucket": "results", "Key": key, "Body": ANY})
    assert stage(client, tmp_path).stage_suite(document)["workload"]["source"] == first
    assert document["workload"]["source"] == "own"


def test_a_stored_suites_uploads_are_renewed_before_they_expire(s3: tuple[Any, Stubber]) -> None:
    """Its local files may be gone. Other buckets are not the lab's, nor other prefixes staged."""
    client, stubber = s3
    data = f"data/{'a' * 64}/"
    aged = {
        f"{data}{days}.csv": {
            "Key": f"{data}{days}.csv",
            "LastModified": datetime.now(UTC) - timedelta(days=days),
        }
        for days in (29, 31)
    }
    stubber.add_response(
        "list_objects_v2", {"Contents": [*aged.values()]}, {"Bucket": "results", "Prefix": data}
    )
    old = f"{data}31.csv"
    place = {"Bucket": "results", "Key": old}
    stubber.add_response("head_object", {"ContentLength": 3, "ETag": "x"}, place)
    copy = {**place, "CopySource": place, "MetadataDirective": "REPLACE"}
    stubber.add_response("copy_object", {}, copy)
    document = suite_with(
        dataset={"path": f"s3://results/{data}"},
        model={"path": f"s3://other/{data}"},
        channels={"again": f"s3://results/{data}", "own": "s3://results/models/mine/"},
    )
    renew_staged(document, Objects(client, "results"))


def test_hub_ids_and_s3_uris_stay_as_they_are(tmp_path: Path, s3: tuple[Any, Stubber]) -> None:
    document = suite_with(
        dataset={"path": "nyu-mll/glue"},
        model={"path": "s3://bucket/model/"},
        channels={"images": "s3://bucket/i/"},
    )
    assert stage(s3[0], tmp_path).stage_suite(document) == document


def test_an_entry_point_or_data_left_behind_are_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(StagingRefused, match="contains no files"):
        list(travel_lines({"dataset": {"path": "empty"}}, beside=tmp_path))
    for name in ("own/train.py", "own/other.py", "data/a.csv", "data/b.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "own/.gitignore").write_text("train.py")
    (tmp_path / "data/.gitignore").write_text("*")
    words = (
        r"'train\.py' would not travel\..* 1 named by \.gitignore \(train\.py\).*add --also-send "
        r".*own/train\.py"
    )
    with pytest.raises(StagingRefused, match=words):
        list(travel_lines({"source": "own", "entry_point": "train.py"}, beside=tmp_path))
    words = (
        r"0 files \(0\.0 KiB\) travel; left out: .*2 named by \.gitignore \(a\.csv, "
        r"b\.csv\).*--also-send PATH"
    )
    with pytest.raises(StagingRefused, match=words):
        list(travel_lines({"dataset": {"path": "data"}}, beside=tmp_path))


@pytest.mark.parametrize("logs", ["train.py", "steps/log.py", None])
def test_a_script_that_would_write_no_step_log_is_named(logs: str | None, tmp_path: Path) -> None:
    source = tmp_path / "code"
    (source / "steps").mkdir(parents=True)
    for name in ("train.py", "steps/log.py", "notes.txt"):
        logging = "from traindyno.callbacks import step_log" if name in (logs, "notes.txt") else ""
        (source / name).write_text(f"import torch\n{logging}\n")
    _, *cautions = travel_lines({"source": "code", "entry_point": "train.py"}, beside=tmp_path)
    told = (
        "caution: no program of code imports traindyno.callbacks, and a run without a step log has "
        "no figures; the three lines are in docs/own-script.md"
    )
    assert cautions == ([] if logs else [told])


@pytest.mark.parametrize(
    ("task", "field", "count"),
    [("causal-lm", "model", 2), ("causal-lm", "dataset", 8), ("script", "model", 8)],
)
def test_of_a_trainers_checkpoint_a_built_in_task_gets_the_model(
    task: str, field: str, count: int, tmp_path: Path, s3: tuple[Any, Stubber]
) -> None:
    client, stubber = s3
    for name in CHECKPOINT:
        (tmp_path / "checkpoint-12" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkpoint-12" / name).write_text("x")
    workload = {"task": task, field: {"path": "checkpoint-12"}}
    (line,) = travel_lines(workload, beside=tmp_path)
    assert line.startswith(f"{field} checkpoint-12: {count} files ")
    assert ("left out: 6 of the training that made the model" in line) == (count == 2)
    told = list[str]()
    stubber.add_response("list_objects_v2", {})
    for _ in range(count):
        stubber.add_response("put_object", {})
    stage(client, tmp_path, told).stage_suite(suite_with(**workload))
    assert f"staging {count} files" in told[0]


def test_allowed_files_are_sent_with_the_rest(tmp_path: Path, s3: tuple[Any, Stubber]) -> None:
    client, stubber = s3
    for name in ("train.py", ".env", ".env.example"):
        (tmp_path / name).write_text("x")
    sent = {}
    for allowed in ([], [tmp_path / ".env.example"]):
        stubber.add_response("list_objects_v2", {})
        stubber.add_response("put_object", {})
        bodies: list[bytes] = []
        client.meta.events.register_first(
            "provide-client-params.s3.PutObject",
            lambda params, kept=bodies, **_: kept.append(params["Body"]),
        )
        area = StagingArea(
            beside=tmp_path, s3=client, bucket="results", tell=print, allowed=allowed_paths(allowed)
        )
        area.stage_suite(suite_with(task="script", source=".", entry_point="train.py"))
        with tarfile.open(fileobj=io.BytesIO(bodies[0])) as archive:
            sent[len(allowed)] = {
                name for name in archive.getnames() if not name.startswith("traindyno")
            }
    assert sent == {0: {"train.py"}, 1: {"train.py", ".env.example"}}


def test_a_listing_of_names_equals_the_sent_files(tmp_path: Path, s3: tuple[Any, Stubber]) -> None:
    client, stubber = s3
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    (tmp_path / "train.py").write_text("print(1)")
    document = suite_with(
        task="script", source=".", entry_point="train.py", dataset={"path": "data.csv"}
    )
    # with nothing laid out, any request would fail
    named = StagingArea(
        beside=tmp_path, s3=client, bucket="results", tell=print, sends=False
    ).stage_suite(document)
    for _ in range(2):
        stubber.add_response("list_objects_v2", {})
        stubber.add_response("put_object", {})
    assert stage(client, tmp_path).stage_suite(document) == named
