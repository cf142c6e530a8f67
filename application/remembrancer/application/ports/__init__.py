"""Ports: what the use cases need from outside, as Protocols.

The docstrings are the specification; ``remembrancer.contracts`` holds each port's contract suite.
The ports of spending (ledger, admission, guards, provider) are imported from their own modules.
Calls block.  Adapters raise the store errors of :mod:`remembrancer.domain.errors`.
"""

from remembrancer.application.ports.access_policy import AccessPolicy
from remembrancer.application.ports.clock import Clock
from remembrancer.application.ports.document_reader import (
    Document,
    DocumentFault,
    DocumentFile,
    DocumentReader,
    DocumentSection,
    FoundDocuments,
)
from remembrancer.application.ports.embedder import Embedder
from remembrancer.application.ports.entry_vault import EntryVault, Original
from remembrancer.application.ports.event_log import EventLog, Recorded
from remembrancer.application.ports.installation_secret import InstallationSecret
from remembrancer.application.ports.randomness import Randomness
from remembrancer.application.ports.sealer import Sealer
from remembrancer.application.ports.semantic_query_lookup import SemanticQueryLookup
from remembrancer.application.ports.session_vault import SessionVault
from remembrancer.application.ports.sparse_index import SparseDocument, SparseIndex
from remembrancer.application.ports.token_counter import TokenCounter
from remembrancer.application.ports.transactions import Transactions
from remembrancer.application.ports.vector_indexes import IndexState, VectorIndex, VectorIndexes
from remembrancer.application.ports.vector_outbox import (
    OutboxErasure,
    OutboxVector,
    VectorOutbox,
)
from remembrancer.application.ports.vector_place import VectorPlace
from remembrancer.application.ports.vector_store import (
    Filter,
    KeptVector,
    VectorMatch,
    VectorPoint,
    VectorStore,
)

__all__ = [
    "AccessPolicy",
    "Clock",
    "Document",
    "DocumentFault",
    "DocumentFile",
    "DocumentReader",
    "DocumentSection",
    "Embedder",
    "EntryVault",
    "EventLog",
    "Filter",
    "FoundDocuments",
    "IndexState",
    "InstallationSecret",
    "KeptVector",
    "Original",
    "OutboxErasure",
    "OutboxVector",
    "Randomness",
    "Recorded",
    "Sealer",
    "SemanticQueryLookup",
    "SessionVault",
    "SparseDocument",
    "SparseIndex",
    "TokenCounter",
    "Transactions",
    "VectorIndex",
    "VectorIndexes",
    "VectorMatch",
    "VectorOutbox",
    "VectorPlace",
    "VectorPoint",
    "VectorStore",
]
