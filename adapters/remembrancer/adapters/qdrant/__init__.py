"""Vectors in Qdrant, a server or a local folder (adr/0019).

``qdrant_client`` takes seconds to load, so no module here does before the first call needs it.
"""
