from typing_extensions import override

from remembrancer.adapters.worker.anyio_worker import AnyioWorker
from remembrancer.application.ports.worker import Worker
from remembrancer.contracts.worker import WorkerContract


class TestAnyioWorker(WorkerContract):
    @override
    def worker(self) -> Worker:
        return AnyioWorker()
