"""One SQLite file, through apsw only: log, vault, indexes and vectors, in one transaction.

A second SQLite library on the same file would drop this one's locks (adr/0002): nothing here, nor
beside it, may open the file by the standard library's module or as a plain file.
"""
