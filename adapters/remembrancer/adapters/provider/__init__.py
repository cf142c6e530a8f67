"""A remote embedding provider over HTTP: one request, one bounded answer."""

from remembrancer.adapters.provider.embedding_provider import OpenAICompatibleProvider
from remembrancer.adapters.provider.secret_source import (
    NoSecret,
    SecretFromEnvironment,
    SecretFromFile,
    SecretSource,
)

__all__ = [
    "NoSecret",
    "OpenAICompatibleProvider",
    "SecretFromEnvironment",
    "SecretFromFile",
    "SecretSource",
]
