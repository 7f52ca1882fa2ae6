import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from localcloud import worker_processes
from localcloud.worker_processes import ForkedWorkers

pytestmark = pytest.mark.skipif(
    not ForkedWorkers.is_possible(), reason="workers are forked on Linux only"
)
PIPES: dict[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
    "bufsize": 1,
}
# Answers each line with what it is and where it runs; the function's code is imported from beside
# the program.
PROGRAM = """
import json, os, random, sys
sys.path.insert(0, os.path.join(os.path.dirname(sys.argv[0]), "code"))
import function
for line in sys.stdin:
    answer = {
        "said": function.answer(line.strip()),
        "module": __name__,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "has_boto3": "boto3" in sys.modules,
        "has_lab": not {"localcloud", "traindyno"}.isdisjoint(
            name.partition(".")[0] for name in sys.modules
        ),
        "random": random.random(),
        "parent": os.getppid(),
    }
    print(json.dumps(answer), flush=True)
    print("noted", file=sys.stderr)
"""


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkedWorkers]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    forked = ForkedWorkers()
    yield forked
    forked.close()


def unpack(folder: Path, answer: str = "word.upper()") -> Path:
    """MiniStack unpacks the same: the archive, its code beside it, and the program."""
    code = folder / "code"
    code.mkdir(parents=True)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        # A fixed time: equal archives have equal bytes.
        archive.writestr(
            zipfile.ZipInfo("function.py"), f"def answer(word):\n    return {answer}\n"
        )
    (folder / "code.zip").write_bytes(packed.getvalue())
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(code)
    (folder / "_worker.py").write_text(PROGRAM)
    return folder


def start(workers: ForkedWorkers, folder: Path, **environment: str) -> Any:
    arguments = [sys.executable, str(folder / "_worker.py")]
    return workers.start(
        arguments, cwd=str(folder / "code"), env={"PATH": os.defpath, **environment}, **PIPES
    )


def ask(worker: Any, word: str) -> dict[str, Any]:
    worker.stdin.write(word + "\n")
    worker.stdin.flush()
    return dict(json.loads(worker.stdout.readline()))


def test_a_forked_worker_equals_a_started_one(workers: ForkedWorkers, tmp_path: Path) -> None:
    worker = start(workers, unpack(tmp_path / "a"), LAB="one")
    answer = ask(worker, "word")
    assert (answer["said"], answer["module"], answer["has_boto3"], answer["has_lab"]) == (
        "WORD",
        "__main__",
        True,
        False,
    )
    assert answer["environment"] == {"PATH": os.defpath, "LAB": "one"} | {
        name: value for name, value in answer["environment"].items() if name == "LC_CTYPE"
    }
    assert Path(answer["folder"]).resolve() == (tmp_path / "a" / "code").resolve()
    assert worker.stderr.readline() == "noted\n"
    assert worker.pid != os.getpid()
    assert [server.process_id for server in workers.servers.values()] == [answer["parent"]]
    assert psutil.Process(answer["parent"]).ppid() == os.getpid()


def test_workers_end_with_their_input_by_a_signal_and_with_the_server(
    workers: ForkedWorkers, tmp_path: Path
) -> None:
    first, second, third = (start(workers, unpack(tmp_path / name)) for name in "abc")
    assert first.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        first.wait(timeout=0.01)
    first.stdin.close()
    second.terminate()
    third.kill()
    assert [worker.wait(timeout=10) for worker in (first, second, third)] == [0, 0, 0]
    assert first.poll() == 0
    second.kill()  # A worker that has ended takes it.


def test_workers_of_one_archive_share_its_code_and_those_of_another_do_not(
    workers: ForkedWorkers, tmp_path: Path
) -> None:
    same = [start(workers, unpack(tmp_path / name)) for name in "ab"]
    other = start(workers, unpack(tmp_path / "c", answer="word[::-1]"))
    answers = [ask(worker, "word") for worker in (*same, other)]
    assert [answer["said"] for answer in answers] == ["WORD", "WORD", "drow"]
    assert answers[0]["random"] != answers[1]["random"]
    folders = {Path(answer["folder"]).resolve() for answer in answers}
    assert len(folders) == 2
    assert all((folder / "__pycache__").is_dir() for folder in folders)


def test_imports_of_handlers_happen_once_and_their_state_is_each_workers_own(
    workers: ForkedWorkers, tmp_path: Path
) -> None:
    note = tmp_path / "imports"
    counted = f"open({str(note)!r}, 'a').write('imported ')\nseen = []\n"
    texts = {
        "function.py": "from lambdas.first import handler\nanswer = handler.answer\n",
        **dict.fromkeys(
            (f"lambdas/{folder}__init__.py" for folder in ("", "first/", "second/")), ""
        ),
        "lambdas/first/handler.py": "import counted\ndef answer(word):\n"
        "    counted.seen.append(word)\n    return counted.seen\n",
        "lambdas/second/handler.py": "import missing\n",
        "counted.py": counted,
    }
    words = []
    for name in "ab":
        folder = unpack(tmp_path / name)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for path, text in texts.items():
                archive.writestr(zipfile.ZipInfo(path), text)
        (folder / "code.zip").write_bytes(packed.getvalue())
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(folder / "code")
        words.append(ask(start(workers, folder), name)["said"])
    assert words == [["a"], ["b"]]
    assert note.read_text() == "imported "


def test_the_forking_process_is_replaced_after_a_kill(
    workers: ForkedWorkers, tmp_path: Path
) -> None:
    answer = ask(start(workers, unpack(tmp_path / "a")), "word")
    for name in "bc":
        killed = answer["parent"]
        os.kill(killed, signal.SIGKILL)
        answer = ask(start(workers, unpack(tmp_path / name)), "word")
        assert (answer["said"], answer["has_boto3"]) == ("WORD", True)
        assert answer["parent"] != killed


def test_a_worker_without_a_server_is_started_as_before(
    workers: ForkedWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_processes, "SERVER", tmp_path / "missing.py")
    worker = start(workers, unpack(tmp_path / "a"))
    assert isinstance(worker, subprocess.Popen)
    answer = ask(worker, "word")
    assert (answer["said"], answer["has_boto3"], answer["parent"]) == ("WORD", False, os.getpid())
    assert worker.communicate(timeout=10) == ("", "noted\n")
    assert worker.returncode == 0


def test_another_interpreters_worker_is_started_as_before(
    workers: ForkedWorkers, tmp_path: Path
) -> None:
    worker = workers.start(["/bin/echo", "as before"], cwd=str(tmp_path), env={}, **PIPES)
    assert worker.stdout.read() == "as before\n"
    assert worker.wait(timeout=10) == 0


def test_a_worker_reads_json_as_deep_as_awss_own_python_does(
    workers: ForkedWorkers, tmp_path: Path
) -> None:
    worker = start(workers, unpack(tmp_path, "len(__import__('json').loads(word))"))
    assert ask(worker, "[" * 6000 + "]" * 6000)["said"] == 1
