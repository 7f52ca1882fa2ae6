"""A home and its files belong to one user, whatever the umask is and whatever was there before."""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request

import pytest

from localcloud import cloud, daemons
from localcloud.environment import aws_settings, local_environment, make_access_key, read_access_key
from localcloud.gated_server import GatedRequestHandler, GatedServer
from localcloud.home import Daemon, Home, HomeUnusable, Ports
from localcloud.ports import free_port

NOBODY = 65534
PORTS = Ports(aws=1, sagemaker=2)
NEEDS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may give a file to another user"
)


@pytest.fixture(
    params=[0o000, 0o022, 0o077], ids=["all may write", "all may read", "the owner alone"]
)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    places = [folder, *(path for path in folder.rglob("*") if not path.is_symlink())]
    modes = {str(path): stat.filemode(path.stat().st_mode) for path in places}
    return {path: mode for path, mode in modes.items() if not mode.endswith("------")}


def test_all_writes_of_a_home_are_its_owners_alone(tmp_path: Path, umask: int) -> None:
    home = Home(tmp_path / "a" / "home")
    with home.alone(tell=print):
        home.write("ports", PORTS)
        home.prepare_log("ministack").parent.joinpath("kept").mkdir(mode=0o700)
        home.state("copied").write_text("by up itself")
        assert make_access_key(home)
        listen = (
            "from pathlib import Path; import sys, time; Path('written').touch(); "
            "Path('made').mkdir(); "
        )
        listen += (
            "from http.server import *; HTTPServer(('127.0.0.1', int(sys.argv[1])), "
            "SimpleHTTPRequestHandler)"
        )
        port = free_port()
        daemons.start(
            home,
            "program",
            [sys.executable, "-c", f"{listen}.serve_forever()", str(port)],
            port=port,
            health=Request(f"http://127.0.0.1:{port}/"),
            environment={},
            folder=home.folder,
        )
        daemons.stop(home, "program", seconds=10)
    assert {path.name for path in home.folder.iterdir()} == {
        "copied",
        "credentials.json",
        "lock",
        "logs",
        "made",
        "ports.json",
        "written",
    }
    assert open_to_others(home.folder) == {}
    assert os.umask(umask) == umask


def test_a_folder_with_files_of_others_is_neither_used_nor_changed(tmp_path: Path) -> None:
    """It may be /tmp."""
    tmp_path.chmod(0o755)
    (tmp_path / "of-somebody-else").write_text("")
    home = Home(tmp_path)
    for use in (
        lambda: home.write("ports", PORTS),
        lambda: home.prepare_log("x"),
        lambda: make_access_key(home),
    ):
        with pytest.raises(
            HomeUnusable, match=r"other users can read it.*set TRAINDYNO_HOME to a new folder"
        ):
            use()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["of-somebody-else"]


@NEEDS_ROOT
def test_the_home_of_another_user_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    make_access_key(home)
    os.chown(home.state("credentials.json"), NOBODY, NOBODY)
    with pytest.raises(HomeUnusable, match=f"belongs to user {NOBODY}.*folder of your own"):
        read_access_key(home)
    os.chown(home.folder, NOBODY, NOBODY)
    with pytest.raises(HomeUnusable, match=f"it belongs to user {NOBODY}.*set TRAINDYNO_HOME"):
        home.write("ports", PORTS)


def test_each_home_has_a_key_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    homes = [Home(tmp_path / name) for name in ("one", "two")]
    assert [make_access_key(home) for home in homes] == [True, True]
    keys = [read_access_key(home) for home in homes]
    assert [make_access_key(home) for home in homes] == [False, False]
    assert [read_access_key(home) for home in homes] == keys
    assert len(set(keys)) == 2
    assert all(16 <= len(key) <= 128 and key.isalnum() for key in keys)  # what AWS's clients accept
    assert aws_settings(Ports(aws=1, sagemaker=2), keys[0])["AWS_ACCESS_KEY_ID"] == keys[0]


@pytest.mark.parametrize("written", [None, "{}", '{"access_key_id": ""}', '{"access_key_id": 3}'])
def test_a_home_without_a_key_says_how_to_get_one(tmp_path: Path, written: str | None) -> None:
    home = Home(tmp_path / "home")
    home.write("ports", PORTS)
    if written is not None:
        home.state("credentials.json").write_text(written)
    with pytest.raises(
        HomeUnusable,
        match=r"(no access key.*make one|is damaged.* start a new one) with: .*local up",
    ):
        cloud.request_to(home, 1, "/health")
    cloud.erase(home)
    make_access_key(home)
    assert read_access_key(home)


class Open(GatedRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def test_a_proxy_of_the_user_gets_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    make_access_key(home)
    server = GatedServer(0, Open, access_key_id=read_access_key(home))
    port = server.server_address[1]
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    ).start()
    for name in ("http_proxy", "no_proxy", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.setenv(
            name, "elsewhere.example" if "no" in name.lower() else "http://127.0.0.1:9"
        )
    assert cloud._read_health(home, Daemon(process_id=0, port=port), "/health") is None
    assert daemons.answers(cloud.request_to(home, port, "/health"))
    environment = local_environment(Ports(aws=port, sagemaker=port), read_access_key(home))
    assert {environment["no_proxy"], environment["NO_PROXY"]} == {
        "elsewhere.example,127.0.0.1,localhost"
    }
    server.shutdown()
    server.server_close()


def test_the_service_does_not_start_without_a_key(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "localcloud.sagemaker_service",
        "--state",
        str(tmp_path),
        "--aws-endpoint",
        "http://x",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "AWS_ACCESS_KEY_ID"}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == 1
    assert (
        ended.stderr
        == "AWS_ACCESS_KEY_ID is not set: expected the access key that each request must name\n"
    )
