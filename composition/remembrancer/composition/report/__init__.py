"""The audit as a page: one self-contained HTML file that a browser shows without any network.

:mod:`~.collecting` reads the log once, stream by stream, and keeps what :mod:`~.picture` defines:
sums per owner and day, and the latest of everything else.  :mod:`~.page` writes it as HTML, with
`page.css`, `page.js` and a charts library put in whole (adr/0025).
"""
