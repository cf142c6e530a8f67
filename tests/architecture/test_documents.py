"""What the documents show is run, so that it stays true."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (remembrancer .+(?:\\\n.*)*)$", re.MULTILINE)


def _blocks(language: str) -> list[str]:
    return [body for name, body in BLOCK.findall(README.read_text()) if name == language]


def _run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    scripts = str(Path(sys.executable).parent)
    return subprocess.run(
        arguments,
        cwd=folder,
        env={**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_python_of_the_readme_runs(tmp_path: Path) -> None:
    """As one script, block after block, in an empty folder."""
    script = "\n".join(_blocks("python"))

    run = _run([sys.executable, "-W", "error", "-c", script], tmp_path)

    assert run.returncode == 0, run.stderr


def test_commands_of_the_readme_run(tmp_path: Path) -> None:
    """Lines of ``console`` blocks that begin with ``$ remembrancer``, in order, in one folder.

    A block may import the project's own documents: they are there under their names.
    """
    for name in ["README.md", "adr"]:
        (tmp_path / name).symlink_to(ROOT / name)

    for block in _blocks("console"):
        for command in COMMAND.findall(block):
            run = _run(shlex.split(command.replace("\\\n", " ")), tmp_path)
            assert run.returncode == 0, f"{command}\n{run.stderr}"


def test_two_commands_come_first() -> None:
    top = README.read_text()[:2000]

    assert "make demo" in top
    assert "make test" in top


@pytest.mark.parametrize("document", ["README.md", "CHANGELOG.md", *(
    f"adr/{path.name}" for path in sorted((ROOT / "adr").glob("*.md"))
)])  # fmt: skip
def test_links_within_the_project_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text()

    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    broken = [
        target
        for target in targets
        if "://" not in target
        and not target.startswith("mailto:")
        and not ((ROOT / document).parent / target).exists()
    ]
    assert not broken


def test_targets_that_the_readme_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()

    for target in set(re.findall(r"`make (\w+)`", README.read_text())):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
