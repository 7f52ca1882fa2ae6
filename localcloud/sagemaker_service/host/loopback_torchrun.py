"""Runs torchrun with a store that listens on loopback only.

A program of its own, for torch 2.4 and later.

torchrun's own store listens on every interface, and its readers unpickle the stored values. This
program uses torchrun's static rendezvous with a socket that is bound to the master's address.
"""

import socket

from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]
from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
from torch.distributed.run import main

BACKEND = "loopback"
JOIN_SECONDS = 600


class LoopbackRendezvous(StaticTCPRendezvous):
    def get_backend(self) -> str:
        return BACKEND

    def next_rendezvous(self) -> RendezvousInfo:
        if not self._store:
            self._store = self._make_store()
        store_info = RendezvousStoreInfo(self.master_addr, self.master_port)
        return RendezvousInfo(
            PrefixStore(self.run_id, self._store), self.rank, self.world_size, store_info
        )

    def _make_store(self) -> TCPStore:
        listening = _listen(self.master_addr, self.master_port) if self.rank == 0 else None
        return TCPStore(
            self.master_addr,
            self.master_port,
            self.world_size,
            self.rank == 0,
            self.timeout,
            multi_tenant=True,
            master_listen_fd=listening,
        )


def _listen(address: str, port: int) -> int:
    """The file descriptor of a listening socket, which the store closes."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen()
    return listener.detach()


def _make_handler(parameters: RendezvousParameters) -> RendezvousHandler:
    address, port = parse_rendezvous_endpoint(parameters.endpoint, -1)
    rank = int(parameters.config["rank"])
    return LoopbackRendezvous(
        address, port, rank, parameters.max_nodes, parameters.run_id, JOIN_SECONDS
    )


if __name__ == "__main__":
    rendezvous_handler_registry.register(BACKEND, _make_handler)
    main()
