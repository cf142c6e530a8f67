"""Documents in Markdown (by markdown-it-py, adr/0009) and in plain text."""
