"""The tour: what a newcomer sees first."""

import os
import subprocess
import sys
from pathlib import Path

DEMO = [sys.executable, "-m", "remembrancer.composition.demo"]


def _tour(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "COLUMNS": "80", "no_proxy": "*"}
    return subprocess.run(
        [*DEMO, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_tour_shows_every_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = _tour(folder=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    for step in ("1. Import", "2. Recall", "3. Pack", "4. Replay", "5. Correct", "6. Replay"):
        assert step in done.stdout
    assert done.stdout.index("as sent: yes") < done.stdout.index("is at version 2")
    assert done.stdout.index("is at version 2") < done.stdout.index("as sent: no")
    assert "differs: operations.md > Durability: erased" in done.stdout
    assert len(done.stdout.splitlines()) < 75
    assert max(map(len, done.stdout.splitlines())) < 200
    assert list(tmp_path.iterdir()) == []


def test_the_tour_takes_other_documents_and_keeps_a_memory(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.md").write_text(f"# Note {number}\nErasing a text for good.\n")
    database = tmp_path / "kept.db"

    done = _tour(str(folder), "--db", str(database), folder=tmp_path)
    again = _tour(str(folder), "--db", str(database), folder=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert "6 entries added" in done.stdout
    assert database.exists()
    assert (again.returncode, again.stderr) == (0, "")
    assert "0 entries added" in again.stdout


def test_the_first_answer_is_clearly_right(tmp_path: Path) -> None:
    told = _tour(folder=tmp_path).stdout

    [best] = [line for line in told.splitlines() if line.startswith(" 1  ")]
    assert "Which commit survives a power cut?" in told
    assert "operations.md > Durability" in best


def test_a_tour_of_nothing_ends_without_a_traceback(tmp_path: Path) -> None:
    done = _tour(str(tmp_path / "missing"), folder=tmp_path)

    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_tour_of_one_document_ends_well(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("# One\nA single section.\n")

    done = _tour(str(tmp_path / "one.md"), folder=tmp_path)

    assert "Traceback" not in done.stderr
    assert done.returncode == 0
