"""Jobs that really run: what they find, which of their files are kept, and that no process
remains.
"""

import io
import json
import os
import signal
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service.storage.log_shipping import MOST_EVENTS
from tests.archives import tar_gz
from tests.local.aws_double import AwsDouble
from tests.local.conftest import FAST
from tests.local.jobs import BUCKET, client, eventually, job_request, stage_script, wait_until
from tests.local.running_service import RunningService, start_service
from tests.unit.localcloud.tiny_wheel import WHEEL, tiny_wheel

TRAINING = frozenset({"Training"})
TWO_HOSTS = {"InstanceType": "local.cpu", "InstanceCount": 2, "VolumeSizeInGB": 1}
SLEEP_FOR_EVER = """
import os, pathlib, subprocess, sys, time
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(sleeper, start_new_session=True)
pathlib.Path(os.environ["SM_MODEL_DIR"], "pids").write_text(f"{os.getpid()} {child.pid}")
pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "began").write_text("yes")
time.sleep(600)
"""
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEP_FOR_EVER


@pytest.fixture
def sagemaker(service: RunningService) -> Any:
    return client("sagemaker", service.endpoint)


def is_alive(process_id: int) -> bool:
    status = Path(f"/proc/{process_id}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def pids_of(service: RunningService, name: str) -> list[int]:
    path = service.state_folder / "jobs" / name / "algo-1" / "ml" / "model" / "pids"
    eventually(lambda: path.exists() and len(path.read_text().split()) == 2)
    return [int(word) for word in path.read_text().split()]


def run_job(sagemaker: Any, name: str, **changes: Any) -> dict[str, Any]:
    sagemaker.create_training_job(**job_request(name, **changes))
    return wait_until(sagemaker, name, seconds=120)


def transitions(job: dict[str, Any]) -> list[str]:
    return [step["Status"] for step in job["SecondaryStatusTransitions"]]


def test_a_job_reads_its_channel_and_leaves_model_output_checkpoint_and_log(
    aws: AwsDouble, sagemaker: Any
) -> None:
    stage_script(
        aws,
        """
import os, pathlib
data = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"], "part", "a.txt").read_text()
pathlib.Path(os.environ["SM_MODEL_DIR"], "model.txt").write_text(data.upper())
pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "note.txt").write_text("n")
folder = pathlib.Path(os.environ["LOG_FOLDER"])
folder.mkdir()
(folder / "step.txt").write_text("s")
print("trained on", data)
""",
    )
    aws.objects[f"{BUCKET}/data/part/a.txt"] = b"words"
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data"}
    request = job_request(
        "whole",
        InputDataConfig=[{"ChannelName": "train", "DataSource": {"S3DataSource": source}}],
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/checkpoints/whole"},
        Environment={"LOG_FOLDER": "/opt/ml/checkpoints/step_log"},
    )
    sagemaker.create_training_job(**request)
    job = wait_until(sagemaker, "whole")
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert transitions(job) == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert job["BillableTimeInSeconds"] == job["TrainingTimeInSeconds"]
    assert (
        job["ModelArtifacts"]["S3ModelArtifacts"] == f"s3://{BUCKET}/out/whole/output/model.tar.gz"
    )
    with tarfile.open(
        fileobj=io.BytesIO(aws.objects[f"{BUCKET}/out/whole/output/model.tar.gz"])
    ) as tar:
        member = tar.extractfile("model.txt")
        assert member is not None
        assert member.read() == b"WORDS"
    assert f"{BUCKET}/out/whole/output/output.tar.gz" in aws.objects
    assert aws.objects[f"{BUCKET}/checkpoints/whole/step_log/step.txt"] == b"s"
    assert b"trained on words" in aws.objects[f"{BUCKET}/out/whole/logs/algo-1.log"]
    assert any(
        stream.startswith("whole/algo-1-") and "trained" in line for stream, line in aws.log_lines
    )


def test_literal_paths_under_opt_ml_are_the_hosts_own(aws: AwsDouble, sagemaker: Any) -> None:
    """Two hosts write to the same literal path at the same time, and neither reads the file of the
    other.
    """
    stage_script(
        aws,
        """
import os, pathlib, time
host = os.environ["SM_CURRENT_HOST"]
file = pathlib.Path("/opt/ml/checkpoints/name.txt")
file.write_text(host)
deadline = time.monotonic() + 20
mark = pathlib.Path(os.environ["SM_MODEL_DIR"]).parents[2] / f"wrote-{host}"
mark.touch()
while len(list(mark.parent.glob("wrote-*"))) < 2 and time.monotonic() < deadline:
    time.sleep(0.02)
assert file.read_text() == host, file.read_text()
assert os.path.samefile("/opt/ml/model", os.environ["SM_MODEL_DIR"])
""",
    )
    checkpoints = {"S3Uri": f"s3://{BUCKET}/checkpoints/own-view"}
    job = run_job(sagemaker, "own-view", ResourceConfig=TWO_HOSTS, CheckpointConfig=checkpoints)
    log = aws.objects[f"{BUCKET}/out/own-view/logs/algo-1.log"]
    if b"/opt/ml is shared" in log:
        pytest.skip(f"this kernel refuses mount namespaces: {log!r}")
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    # Both hosts write to one prefix, as on SageMaker: the last upload remains.
    assert aws.objects[f"{BUCKET}/checkpoints/own-view/name.txt"] in {b"algo-1", b"algo-2"}


def test_a_sources_requirements_are_installed_or_end_the_job_with_the_reason(
    aws: AwsDouble, sagemaker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    endings = {}
    monkeypatch.setenv("PRIVATE_TOKEN", "wallet")
    for name, wanted in (
        ("installed", f"./{WHEEL}"),
        (
            "missing",
            "--no-index\nno-such-package-of-${PRIVATE_TOKEN}",
        ),  # pip replaces it by what it sees
    ):
        script = "import tinywheel; assert tinywheel.VALUE == 7"
        files: dict[str, str | bytes] = {
            "train.py": script,
            WHEEL: tiny_wheel(7),
            "requirements.txt": f"{wanted}\n",
        }
        aws.objects[f"{BUCKET}/code/sourcedir.tar.gz"] = tar_gz(files)
        sagemaker.create_training_job(**job_request(name))
        endings[name] = wait_until(sagemaker, name)
    assert endings["installed"]["TrainingJobStatus"] == "Completed", endings["installed"].get(
        "FailureReason"
    )
    reason = endings["missing"]["FailureReason"]
    assert reason.startswith("AlgorithmError: InstallRequirementsError: pip could not install"), (
        reason
    )
    assert "no-such-package-of-" in reason
    assert "wallet" not in reason


def test_an_uncompressed_model_is_uploaded_file_by_file(aws: AwsDouble, sagemaker: Any) -> None:
    stage_script(
        aws,
        """
import os, pathlib
folder = pathlib.Path(os.environ["SM_MODEL_DIR"], "train")
folder.mkdir()
(folder / "tokens.npy").write_text("t")
pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "note.txt").write_text("n")
""",
    )
    output = {"S3OutputPath": f"s3://{BUCKET}/plain", "CompressionType": "NONE"}
    job = run_job(sagemaker, "files", OutputDataConfig=output)
    assert job["ModelArtifacts"]["S3ModelArtifacts"] == f"s3://{BUCKET}/plain/files/output/model/"
    left = {key for key in aws.objects if key.startswith(f"{BUCKET}/plain/files/output/")}
    assert left == {
        f"{BUCKET}/plain/files/output/{name}"
        for name in ("model/train/tokens.npy", "data/note.txt")
    }


def test_two_hosts_meet_through_torchrun(aws: AwsDouble, sagemaker: Any) -> None:
    stage_script(
        aws,
        """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
assert total.item() == 3.0, total
port = f":{int(os.environ['MASTER_PORT']):04X}"
rows = [line.split() for table in ("tcp", "tcp6") for line in open(f"/proc/net/{table}")]
listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(port)]
assert listening == ["0100007F" + port], listening  # 127.0.0.1, as the kernel prints it
print("rank", dist.get_rank(), "of", dist.get_world_size(), os.environ["SM_CURRENT_HOST"])
dist.barrier()
dist.destroy_process_group()
""",
    )
    flag = {"sagemaker_torch_distributed_enabled": "true"}
    job = run_job(sagemaker, "pair", ResourceConfig=TWO_HOSTS, HyperParameters=flag)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert b"of 2 algo-2" in aws.objects[f"{BUCKET}/out/pair/logs/algo-2.log"]


def test_the_first_failed_host_gives_the_reason_and_not_torchruns_report(
    aws: AwsDouble, sagemaker: Any
) -> None:
    stage_script(
        aws,
        """
import os, time
if os.environ["SM_CURRENT_HOST"] == "algo-2":
    raise RuntimeError("the second host had enough")
time.sleep(600)
""",
    )
    flag = {"sagemaker_torch_distributed_enabled": "true"}
    reason = run_job(sagemaker, "unequal", ResourceConfig=TWO_HOSTS, HyperParameters=flag)[
        "FailureReason"
    ]
    assert "RuntimeError: the second host had enough" in reason
    assert "ChildFailedError" not in reason


def test_output_of_any_length_is_sent_in_part_and_not_billed(
    aws: AwsDouble, sagemaker: Any
) -> None:
    """Three million lines, as of a loop that logs without a limit."""
    stage_script(
        aws,
        """
import sys
print("first")
block = "x\\n" * 500_000
for _ in range(6):
    sys.stdout.write(block)
print("last", end="")
""",
    )
    job = run_job(sagemaker, "loud")
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    (stream,) = {stream for stream, _ in aws.log_lines if stream.startswith("loud/")}
    lines = [line for name, line in aws.log_lines if name == stream]
    assert ("the whole log is in S3" in lines[0], lines[-1]) == (True, "last")
    assert len(lines) == MOST_EVENTS + 1
    assert len(aws.objects[f"{BUCKET}/out/loud/logs/algo-1.log"]) == 6_000_010
    # The end of the log was sent when the bill had ended.
    assert job["TrainingEndTime"].timestamp() <= aws.logs_came_at[stream]


def test_a_checkpoint_is_uploaded_while_the_job_runs_and_is_there_for_the_next(
    aws: AwsDouble, sagemaker: Any
) -> None:
    stage_script(
        aws,
        """
import os, pathlib, time
mark = pathlib.Path(os.environ["FOLDER"], "mark")
if not mark.exists():
    mark.write_text("one"); time.sleep(600)
mark.write_text(mark.read_text() + " two")
""",
    )
    both = {
        "CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/cp"},
        "Environment": {"FOLDER": "/opt/ml/checkpoints"},
    }
    sagemaker.create_training_job(**job_request("first", **both))
    eventually(lambda: aws.objects.get(f"{BUCKET}/cp/mark") == b"one")
    sagemaker.stop_training_job(TrainingJobName="first")
    assert wait_until(sagemaker, "first")["TrainingJobStatus"] == "Stopped"
    sagemaker.create_training_job(**job_request("second", **both))
    assert wait_until(sagemaker, "second")["TrainingJobStatus"] == "Completed"
    assert aws.objects[f"{BUCKET}/cp/mark"] == b"one two"


def test_a_failed_script_gives_its_written_reason_with_its_exit_code(
    aws: AwsDouble, sagemaker: Any
) -> None:
    stage_script(
        aws,
        """
import os, pathlib, sys
failure = pathlib.Path(os.environ["SM_OUTPUT_DIR"], "failure")
failure.write_text("traindyno-outcome: out_of_memory: 12 GiB wanted")
sys.exit(3)
""",
    )
    job = run_job(sagemaker, "reasoned")
    assert job["TrainingJobStatus"] == "Failed"
    assert (
        job["FailureReason"]
        == "AlgorithmError: traindyno-outcome: out_of_memory: 12 GiB wanted, exit code: 3"
    )


def test_a_raising_script_gives_the_end_of_its_log(aws: AwsDouble, sagemaker: Any) -> None:
    stage_script(aws, "print('x' * 5000)\nraise ValueError('no such column: label')")
    reason = run_job(sagemaker, "raised")["FailureReason"]
    assert reason.startswith("AlgorithmError: ExecuteUserScriptError:\nExitCode 1\n")
    assert "ValueError: no such column: label" in reason
    assert reason.endswith(", exit code: 1")
    assert len(reason) <= 1024


def test_a_job_killed_from_outside_ends_with_code_137_and_no_process(
    aws: AwsDouble, service: RunningService, sagemaker: Any
) -> None:
    stage_script(aws, SLEEP_FOR_EVER)
    sagemaker.create_training_job(**job_request("killed"))
    pids = pids_of(service, "killed")
    assert service.administer("/_local/kill", {"TrainingJobName": "killed"})["killed"] == len(pids)
    assert wait_until(sagemaker, "killed")["FailureReason"].endswith(", exit code: 137")
    assert not [pid for pid in pids if is_alive(pid)]


def test_missing_data_fails_the_job_as_the_callers_error(aws: AwsDouble, sagemaker: Any) -> None:
    stage_script(aws, "print('never')")
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/absent"}
    channel = {"ChannelName": "train", "DataSource": {"S3DataSource": source}}
    job = run_job(sagemaker, "empty", InputDataConfig=[channel])
    assert job["FailureReason"].startswith("ClientError: Data download failed:No S3 objects found")
    assert transitions(job) == ["Starting", "Downloading", "Failed"]


def test_an_archive_reaching_outside_its_folder_is_refused(
    aws: AwsDouble, sagemaker: Any, tmp_path: Path
) -> None:
    escaping = tmp_path / "escaped"
    aws.objects[f"{BUCKET}/code/sourcedir.tar.gz"] = tar_gz(
        {f"../../../..{escaping}": "x", "train.py": ""}
    )
    sagemaker.create_training_job(**job_request("escaping"))
    assert "can't be unpacked" in wait_until(sagemaker, "escaping")["FailureReason"]
    assert not escaping.exists()


@pytest.mark.parametrize("stops", [None, "none"], ids=["sigterm", "no-sigterm"])
@pytest.mark.parametrize("script", [SLEEP_FOR_EVER, DEAF], ids=["hears", "ignores"])
def test_a_stopped_job_uploads_its_files_and_leaves_no_process(
    aws: AwsDouble, service: RunningService, sagemaker: Any, script: str, stops: str | None
) -> None:
    service.administer("/_local/faults", {"stops": stops})
    stage_script(aws, script)
    name = f"stopped-{len(script)}-{stops or 'all'}"
    sagemaker.create_training_job(**job_request(name))
    pids = pids_of(service, name)
    sagemaker.stop_training_job(TrainingJobName=name)
    job = wait_until(sagemaker, name)
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert transitions(job)[-3:] == ["Stopping", "Uploading", "Stopped"]
    assert not [pid for pid in pids if is_alive(pid)]
    assert f"{BUCKET}/out/{name}/output/output.tar.gz" in aws.objects


def test_a_job_past_its_longest_run_is_stopped_for_that(
    aws: AwsDouble, service: RunningService, sagemaker: Any
) -> None:
    stage_script(aws, SLEEP_FOR_EVER)
    sagemaker.create_training_job(
        **job_request("long", StoppingCondition={"MaxRuntimeInSeconds": 1})
    )
    pids = pids_of(service, "long")
    job = wait_until(sagemaker, "long")
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    assert not [pid for pid in pids if is_alive(pid)]


def test_a_child_outliving_its_job_is_ended_with_it(
    aws: AwsDouble, service: RunningService, sagemaker: Any
) -> None:
    # A child without an environment has no mark of its job: only its parents show that it belongs
    # to the job.
    script = SLEEP_FOR_EVER.replace(
        "start_new_session=True", "start_new_session=True, env={}, stdout=-3, stderr=-3"
    )
    stage_script(aws, script.replace("time.sleep(600)\n", "time.sleep(0.3)\n"))
    sagemaker.create_training_job(**job_request("parent"))
    _, child = pids_of(service, "parent")
    assert wait_until(sagemaker, "parent")["TrainingJobStatus"] == "Completed"
    assert not is_alive(child)


def test_a_job_of_the_same_name_in_another_service_lives_on(
    aws: AwsDouble, sagemaker: Any, tmp_path: Path
) -> None:
    stage_script(aws, SLEEP_FOR_EVER)
    with start_service(tmp_path, aws.endpoint, *FAST) as other:
        elsewhere = client("sagemaker", other.endpoint)
        elsewhere.create_training_job(**job_request("twin"))
        processes = pids_of(other, "twin")
        sagemaker.create_training_job(**job_request("twin"))
        wait_until(sagemaker, "twin", TRAINING)
        sagemaker.stop_training_job(TrainingJobName="twin")
        assert wait_until(sagemaker, "twin")["TrainingJobStatus"] == "Stopped"
        assert all(map(is_alive, processes))


def test_a_second_job_waits_for_the_machine_and_can_be_stopped_meanwhile(
    aws: AwsDouble, sagemaker: Any
) -> None:
    stage_script(aws, SLEEP_FOR_EVER)
    sagemaker.create_training_job(**job_request("running"))
    wait_until(sagemaker, "running", TRAINING)
    sagemaker.create_training_job(**job_request("waiting"))
    job = wait_until(sagemaker, "waiting", frozenset({"Starting"}))
    assert (
        "waiting for the machine, behind another job"
        in job["SecondaryStatusTransitions"][-1]["StatusMessage"]
    )
    sagemaker.stop_training_job(TrainingJobName="waiting")
    job = wait_until(sagemaker, "waiting")
    assert (job["TrainingJobStatus"], "BillableTimeInSeconds" in job) == ("Stopped", False)
    sagemaker.stop_training_job(TrainingJobName="running")
    wait_until(sagemaker, "running")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_dying_service_takes_its_job_along_and_says_so_after_its_restart(
    aws: AwsDouble, tmp_path: Path, number: signal.Signals
) -> None:
    stage_script(aws, DEAF)
    with start_service(tmp_path, aws.endpoint, *FAST) as running:
        before = client("sagemaker", running.endpoint)
        before.create_training_job(**job_request("lost"))
        pids = pids_of(running, "lost")
        before.create_training_job(**job_request("queued"))
        os.kill(running.process.pid or 0, number)
        running.process.join()
        eventually(lambda: not [pid for pid in pids if is_alive(pid)])
    stage_script(aws, "print('fine')")
    with start_service(tmp_path, aws.endpoint, *FAST) as running:
        after = client("sagemaker", running.endpoint)
        lost = wait_until(after, "lost")
        assert (
            lost["FailureReason"]
            == "InternalServerError: We encountered an internal error.  Please try again."
        )
        assert wait_until(after, "queued")["TrainingJobStatus"] == "Completed"


def test_many_requests_at_once_are_all_answered(aws: AwsDouble, service: RunningService) -> None:
    stage_script(aws, "pass")
    names = [f"many-{number}" for number in range(12)]
    clients = {name: client("sagemaker", service.endpoint) for name in names}

    def create(name: str) -> None:
        clients[name].create_training_job(**job_request(name))

    threads = [threading.Thread(target=create, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    sagemaker = client("sagemaker", service.endpoint)
    assert {wait_until(sagemaker, name)["TrainingJobStatus"] for name in names} == {"Completed"}


def test_a_helper_holding_the_output_open_keeps_the_job_until_its_limit(
    aws: AwsDouble, sagemaker: Any
) -> None:
    """The training toolkit reads until the pipe is closed."""
    stage_script(
        aws,
        (
            "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; "
            "time.sleep(600)'])"
        ),
    )
    job = run_job(sagemaker, "held", StoppingCondition={"MaxRuntimeInSeconds": 8})
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    assert (
        b"its output is still open in process " in aws.objects[f"{BUCKET}/out/held/logs/algo-1.log"]
    )


def test_a_scripts_arguments_are_read_by_a_shell_as_in_the_toolkit(
    aws: AwsDouble, sagemaker: Any
) -> None:
    stage_script(
        aws, "import sys, pathlib, os; print('GOT', sys.argv[1:], sorted(os.listdir('.')))"
    )
    request = job_request("spoken")
    request["HyperParameters"] |= {"note": json.dumps("5 > seven"), "prompt": json.dumps("a b")}
    sagemaker.create_training_job(**request)
    assert wait_until(sagemaker, "spoken")["TrainingJobStatus"] == "Completed"
    log = aws.objects[f"{BUCKET}/out/spoken/logs/algo-1.log"]
    assert b"seven" not in log.split(b"[", 1)[-1].split(b"]", 1)[0]
