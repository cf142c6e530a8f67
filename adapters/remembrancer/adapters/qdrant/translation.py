"""What Qdrant and its client raise, in the words of the store errors.

The client's exceptions carry the answer's body and the request with its key, so none is kept as
a cause: a traceback must not show them.
"""

import ssl

from remembrancer.domain.errors import StoreError, StoreForbiddenError, StoreUnavailableError

NOT_THERE = "it has no such collection"
_UNAUTHORISED = (401, 403)
_NOT_FOUND = 404
_BAD_REQUEST = 400
_GRPC_DISTRUST = {
    "CERTIFICATE_VERIFY_FAILED": "certificate verify failed",
    "Hostname Verification Check failed": "hostname mismatch",
}
"""What gRPC's words hold where a certificate was refused, which has no status of its own."""


def translated(error: Exception, *, store: str) -> StoreError | None:
    """Return the store error that ``error`` means; None for what isn't Qdrant's doing."""
    name = type(error).__name__
    module = type(error).__module__.partition(".")[0]
    if module == "qdrant_client":
        return _of_http(error, name, store)
    if module == "grpc":
        return _of_grpc(error, store)
    if module in {"json", "pydantic_core"}:
        return StoreUnavailableError(store=store, problem="what answers isn't Qdrant")
    if module == "sqlite3":
        return StoreUnavailableError(store=store, problem=f"its folder: {name}")
    return _of_local(error, store)


def is_refusal(error: Exception) -> bool:
    """Say whether a server won't do what was asked, as one in strict mode may."""
    if getattr(error, "status_code", None) == _BAD_REQUEST:
        return True
    code = getattr(error, "code", None)
    return getattr(code() if callable(code) else None, "name", "") == "INVALID_ARGUMENT"


def _of_http(error: Exception, name: str, store: str) -> StoreError:
    status = getattr(error, "status_code", None)
    if status in _UNAUTHORISED:
        return StoreForbiddenError(store=store, problem=f"refuses the API key ({status})")
    if status == _NOT_FOUND:
        return StoreUnavailableError(store=store, problem=NOT_THERE)
    if status is not None:
        return StoreUnavailableError(store=store, problem=f"answered with status {status}")
    inner = getattr(error, "source", None)
    if (why := _distrust(inner)) is not None:
        return _untrusted(store, why)
    what = name if inner is None else type(inner).__name__
    return StoreUnavailableError(store=store, problem=f"no answer ({what})")


def _of_grpc(error: Exception, store: str) -> StoreError:
    code = getattr(error, "code", None)
    name = str(getattr(code() if callable(code) else None, "name", "no status"))
    if name in {"UNAUTHENTICATED", "PERMISSION_DENIED"}:
        return StoreForbiddenError(store=store, problem=f"refuses the API key ({name})")
    if name == "NOT_FOUND":
        return StoreUnavailableError(store=store, problem=NOT_THERE)
    details = getattr(error, "details", None)
    words = str(details() if callable(details) else "")
    for sign, why in _GRPC_DISTRUST.items():
        if sign in words:
            return _untrusted(store, why)
    return StoreUnavailableError(store=store, problem=f"no answer ({name})")


def _distrust(error: object) -> str | None:
    """Return why a server's certificate was refused, if that is what went wrong."""
    while isinstance(error, BaseException):
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None


def _untrusted(store: str, why: str) -> StoreError:
    return StoreUnavailableError(
        store=store, problem=f"its certificate isn't trusted ({why}); see to vector_store.ca_file"
    )


def _of_local(error: Exception, store: str) -> StoreError | None:
    """Local mode raises plain exceptions, known by their words alone."""
    words = str(error)
    if isinstance(error, ValueError) and words.endswith("not found"):
        return StoreUnavailableError(store=store, problem=NOT_THERE)
    return None
