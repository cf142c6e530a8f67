"""The static model that the package ``wordllama`` carries: embedder and token counter.

Both read the package's two files and never import its code, which brings an HTTP client and sets
up the host's logging (adr/0004).
"""
