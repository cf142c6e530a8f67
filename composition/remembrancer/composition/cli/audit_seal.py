"""Seals on the command line: ``audit seal``, ``audit verify``, ``audit keygen``."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from remembrancer.composition.cli.audited import (
    audited_store,
    opened_source,
    report_data,
    show_findings,
)
from remembrancer.composition.cli.options import AsJson, Config, Db
from remembrancer.composition.cli.output import Output
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import InvalidInputError

KEY_FILE_BYTES_MAX = 65_536


def keygen(
    key: Annotated[Path, typer.Option("--key", help="A new file for the private key.")],
    public_key: Annotated[
        Path | None,
        typer.Option("--public-key", help="A new file for the public key; KEY.pub by default."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a pair of Ed25519 keys; only you may read the private one."""
    # Here, since every other command would pay for them.
    from remembrancer.adapters.randomness.randomness import SystemRandomness  # noqa: PLC0415
    from remembrancer.adapters.sealing.signer import (  # noqa: PLC0415
        Ed25519Signer,
        new_key,
        private_pem,
        public_pem,
    )
    from remembrancer.composition.export_file import created  # noqa: PLC0415

    public = key.with_name(key.name + ".pub") if public_key is None else public_key
    drawn = new_key(SystemRandomness())
    with created(key) as write_private, created(public) as write_public:
        write_private(private_pem(drawn))
        write_public(public_pem(Ed25519Signer(key=drawn).public_key()))
    out = Output(as_json=as_json)
    if as_json:
        out.data({"key": str(key), "public_key": str(public)})
        return
    out.line(f"{key} signs; keep it where the log can't be changed from.")
    out.line(f"{public} verifies; give it to whoever audits.")


def seal(
    key: Annotated[Path, typer.Option("--key", help="The private key, from `audit keygen`.")],
    out_file: Annotated[Path, typer.Option("--out", help="A new file for the seal.")],
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Write a signed statement of all that is in the log now."""
    # As above.
    from remembrancer.adapters.sealing.signer import (  # noqa: PLC0415
        Ed25519Signer,
        private_key_of,
    )
    from remembrancer.application.audit.seal import write_seal  # noqa: PLC0415
    from remembrancer.composition.export_file import created  # noqa: PLC0415

    signer = Ed25519Signer(key=private_key_of(_read(key, field="key")))
    store, out = audited_store(db, config), Output(as_json=as_json)
    with (
        opened_source(store) as source,
        created(out_file) as write,
        out.progress("sealing") as progress,
    ):
        statement, report = write_seal(
            source, signer, write, at=datetime.now(UTC), progress=progress
        )
        if report.is_green and as_json:
            out.data({"seal": str(out_file), **statement.as_json()})
        elif report.is_green:
            out.line(
                f"{out_file} seals {counted(statement.events, 'event')} in "
                f"{counted(statement.streams, 'stream')}, up to {statement.position}."
            )
        elif as_json:
            out.data(report_data(report))
        else:
            out.line("Nothing was sealed: the log isn't sound.", style="red")
            show_findings(out, report)
        if not report.is_green:
            raise typer.Exit(1)  # Inside, so that no half of a seal is left.


def verify(
    seal_file: Annotated[Path, typer.Option("--seal", help="What `audit seal` wrote.")],
    public_key: Annotated[
        Path, typer.Option("--public-key", help="The public key of whoever sealed.")
    ],
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Prove that the log extends what was sealed; exit 1 with the streams that don't."""
    # As above.
    from remembrancer.adapters.sealing.signer import (  # noqa: PLC0415
        Ed25519SignatureCheck,
        public_key_of,
    )
    from remembrancer.application.audit.verify_seal import VerifySeal  # noqa: PLC0415
    from remembrancer.composition.export_file import seal_lines_of  # noqa: PLC0415

    trusted = public_key_of(_read(public_key, field="public-key"))
    store, out = audited_store(db, config), Output(as_json=as_json)

    def lines() -> AbstractContextManager[Iterable[bytes]]:
        return seal_lines_of(seal_file)

    with opened_source(store) as source, out.progress("verifying") as progress:
        check = VerifySeal(source=source, signatures=Ed25519SignatureCheck())
        report = check(lines, public_key=trusted, progress=progress)
    if as_json:
        out.data(report_data(report))
    elif report.is_green:
        sealed = report.counts
        out.line(
            f"{report.store} extends the seal: all is there, unaltered: "
            f"{counted(sealed['sealed events'], 'event')} in "
            f"{counted(sealed['sealed streams'], 'stream')} ({report.notes[0]}).",
            style="green",
        )
    else:
        show_findings(out, report)
    if not report.is_green:
        raise typer.Exit(1)


def _read(path: Path, *, field: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(KEY_FILE_BYTES_MAX)
    except OSError as error:
        raise InvalidInputError(
            field=field, problem=f"{path} can't be read: {error.strerror}"
        ) from None
