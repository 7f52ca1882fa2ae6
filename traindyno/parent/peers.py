"""The parents of a job's other hosts: they begin and end a run together."""

import socket
import time
from datetime import timedelta
from typing import Any, Callable, Dict, List, Optional, Tuple

from traindyno.core.jobs.journal_format import MASTER_ADDRESS_VARIABLE, MASTER_PORT_VARIABLE
from traindyno.parent.host import Host

JOIN_SECONDS = 900.0
LOOK_AGAIN_SECONDS = 0.05
BEAT_SECONDS = 1.0
GOODBYE_SECONDS = 10.0
# Beside 7777, which the toolkit names to scripts
PORT = 7776
LOOPBACK = "127.0.0.1"


class PeerLost(Exception):
    """Another host's parent has ended, or was silent for longer than the lease."""


class Peers:
    """A job of one host: nobody to wait for."""

    rank = 0
    count = 1

    def __init__(self) -> None:
        self._words: Dict[str, str] = {}

    def beat(self) -> None:
        """Say that this host lives, at least once in a lease. Raises PeerLost."""

    def say(self, key: str, word: str) -> str:
        """The first word counts: every host gets the same."""
        return self._words.setdefault(key, word)

    def heard(self, key: str) -> Optional[str]:
        return self._words.get(key)

    def arrive(self, key: str) -> None:
        self._words[key] = ""

    def all_arrived(self, key: str) -> bool:
        return key in self._words

    def wait_for(self, key: str) -> str:
        """The word that the first host says."""
        return self._words[key]

    def first_says(self, key: str, word: Callable[[], str]) -> str:
        """The first host decides: the others may have other copies of the files, and other
        clocks.
        """
        if self.rank == 0:
            self.say(key, word())
        return self.wait_for(key)

    def barrier(self, key: str) -> None:
        """Wait until every host has arrived."""
        self.arrive(key)
        while not self.all_arrived(key):
            self.beat()
            time.sleep(LOOK_AGAIN_SECONDS)

    def leave(self) -> None:
        """Leave the other hosts, after the last barrier."""


class StorePeers(Peers):
    """Hosts that share a store of PyTorch, which the first host serves."""

    def __init__(self, rank: int, count: int, store: Any, lease_seconds: float) -> None:
        super().__init__()
        self.rank = rank
        self.count = count
        self._store = store
        self._lease_seconds = lease_seconds
        self._seen: List[Tuple[int, float]] = [(-1, time.monotonic())] * count
        self._next_beat = 0.0

    def beat(self) -> None:
        now = time.monotonic()
        if now < self._next_beat:
            return
        self._next_beat = now + BEAT_SECONDS
        for rank in range(self.count):
            beats = self._add("beat/{}".format(rank), int(rank == self.rank))
            if beats != self._seen[rank][0]:
                self._seen[rank] = beats, time.monotonic()
            elif time.monotonic() - self._seen[rank][1] > self._lease_seconds:
                raise PeerLost("host {} was silent for {:g} s".format(rank, self._lease_seconds))

    def say(self, key: str, word: str) -> str:
        return self._text(self._ask("compare_set", key, "", word))

    def heard(self, key: str) -> Optional[str]:
        return self._text(self._ask("get", key)) if self._ask("check", [key]) else None

    def arrive(self, key: str) -> None:
        self._add(key, 1)

    def all_arrived(self, key: str) -> bool:
        return self._add(key, 0) >= self.count

    def wait_for(self, key: str) -> str:
        while True:
            word = self.heard(key)
            if word is not None:
                return word
            self.beat()
            time.sleep(LOOK_AGAIN_SECONDS)

    def leave(self) -> None:
        """The first host serves the store until the others have left."""
        self._add("left", 1)
        end = time.monotonic() + GOODBYE_SECONDS
        while self.rank == 0 and self._add("left", 0) < self.count and time.monotonic() < end:
            time.sleep(LOOK_AGAIN_SECONDS)

    def _add(self, key: str, number: int) -> int:
        return int(self._ask("add", key, number))

    def _ask(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._store, method)(*arguments)
        except RuntimeError as error:
            raise PeerLost("the first host's store does not answer: {}".format(error)) from error

    @staticmethod
    def _text(word: Any) -> str:
        return str(word.decode() if isinstance(word, bytes) else word)


def meet(host: Host, lease_seconds: float) -> Peers:
    """Wait until all hosts are there."""
    count = len(host.hosts)
    address = master_address(host)
    if count == 1:
        return Peers()
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # noqa: PLC0415 -- one host does without it

    port = int(host.environment.get(MASTER_PORT_VARIABLE, PORT))
    listening = {}  # type: Dict[str, Any]
    if host.environment.get(MASTER_ADDRESS_VARIABLE) and not host.rank:
        # Where the hosts are one machine, the store listens at the given address only.
        own = socket.socket()
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind((address, port))
        own.listen()
        listening["master_listen_fd"] = own.detach()
    try:
        store = TCPStore(
            address, port, count, host.rank == 0, timedelta(seconds=JOIN_SECONDS), **listening
        )
        store.set_timeout(timedelta(seconds=lease_seconds))
    except RuntimeError as error:
        raise PeerLost(
            "the hosts did not find each other at {}:{}: {}".format(address, port, error)
        ) from error
    return StorePeers(host.rank, count, store, lease_seconds)


def master_address(host: Host) -> str:
    """The first host; with one host, loopback."""
    return host.environment.get(MASTER_ADDRESS_VARIABLE) or (
        host.hosts[0] if len(host.hosts) > 1 else LOOPBACK
    )


def free_port(host: Host) -> int:
    """A free port of the first host, for the processes of one run."""
    address = host.environment.get(MASTER_ADDRESS_VARIABLE, "")
    with socket.socket() as one:
        one.bind((address, 0))
        return int(one.getsockname()[1])
