"""A burst of calls shares a few workers, and no call waits for ever."""

import threading
import time
from dataclasses import dataclass, field

from localcloud.worker_pool import WorkerPool

START_SECONDS = 0.2
CALL_SECONDS = 0.005
CALLS = 24


@dataclass
class PlainWorker:
    in_use: bool = True
    _cold: bool = True


@dataclass
class PlainPool:
    """Like MiniStack's pool, it gives a free worker, otherwise a new one."""

    workers: list[PlainWorker] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(
        self, name: str, config: object, code: bytes, qualifier: str
    ) -> tuple[PlainWorker, str]:
        with self.lock:
            for worker in self.workers:
                if not worker.in_use:
                    worker.in_use = True
                    return worker, "reused"
            self.workers.append(PlainWorker())
            return self.workers[-1], "spawn"

    def give_back(self, worker: PlainWorker) -> None:
        worker.in_use = False


def limited(
    plain: PlainPool,
    most_starting: int,
    longest_wait_seconds: float = 10,
    most_workers: int = CALLS,
) -> WorkerPool:
    return WorkerPool(
        lambda *_: list(plain.workers),
        plain.take,
        plain.give_back,
        most_starting=most_starting,
        most_workers=most_workers,
        longest_wait_seconds=longest_wait_seconds,
    )


def call(pool: WorkerPool) -> None:
    worker, how = pool.acquire("SubmitRun", {}, b"")
    if how == "spawn":
        time.sleep(START_SECONDS)
        worker._cold = False
    time.sleep(CALL_SECONDS)
    pool.release(worker)


def call_at_once(pool: WorkerPool) -> None:
    threads = [threading.Thread(target=call, args=(pool,)) for _ in range(CALLS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_a_burst_starts_few_workers_for_all_calls() -> None:
    plain = PlainPool()
    pool = limited(plain, 2)
    call_at_once(pool)
    assert 2 <= len(plain.workers) <= 8


def test_a_function_has_no_more_workers_than_the_limit_however_long_its_calls_take() -> None:
    plain = PlainPool()
    pool = limited(plain, CALLS, most_workers=3)
    call_at_once(pool)
    assert len(plain.workers) == 3


def test_a_call_waiting_for_itself_goes_on_with_a_worker_of_its_own() -> None:
    plain = PlainPool()
    pool = limited(plain, 1, longest_wait_seconds=0.1)
    outer, _ = pool.acquire("SubmitRun", {}, b"")
    inner, how = pool.acquire("SubmitRun", {}, b"")
    assert (inner is not outer, how) == (True, "spawn")
