"""Running SQL as it is written, in a migration or into a script for an administrator."""

from importlib.resources import files
from typing import cast

from alembic import op
from sqlalchemy import text

from remembrancer.adapters.postgres.migrations.row_security import Roles

BASE = "base"


def run(script: str) -> None:
    """Run a script; colons and percent signs mean nothing in it."""
    op.execute(text(script.replace(":", r"\:")))


def run_file(name: str) -> None:
    """Run a file below this module's folder."""
    run((files(__package__) / name).read_text(encoding="utf-8"))


def run_folder(name: str) -> None:
    """Run all ``.sql`` files of a folder beside this module, in the order of their names."""
    folder = files(__package__) / name
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        if file.name.endswith(".sql"):
            run(file.read_text(encoding="utf-8"))


def roles() -> Roles:
    """Return the roles that the migration was told to make."""
    environment = op.get_context().environment_context
    assert environment is not None  # noqa: S101 - migrate.py runs revisions inside one
    return cast("Roles", environment.config.attributes["roles"])
