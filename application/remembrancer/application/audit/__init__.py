"""The audit: every rule about the past that log and vault alone can prove (adr/0021).

One family of invariants a module.  :func:`~.records.audit_records` runs the rules over any
iterable of raw events; :class:`~.audit.Audit` runs everything over a store.
"""
