"""The model's files, loaded once per process and shared by embedder and token counter.

A static model is a table: one row of float16 numbers per token.  A text's vector is the mean of
its tokens' rows, so all the work is cutting text into tokens.  The vocabulary makes that cheap:

- no token holds a space (written ``▁``) anywhere but at its start, so a text falls apart at
  spaces without changing one token;
- no token holds a line break, so it falls apart there too;
- words come again, so their tokens are remembered.

What comes out is what the package's own tokenizer gives, in an eighth of the time
(``tests/adapters/test_token_counter.py`` compares).  One difference is deliberate: a run of more
than 4,096 characters without a space is read in pieces of that length, so that time and memory
stay bounded.
"""

import hashlib
import re
from array import array
from importlib.util import find_spec
from mmap import ACCESS_COPY, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from remembrancer.domain.errors import SettingsError

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    import numpy.typing as npt

PACKAGE = "wordllama"
MODEL = "l2_supercat_256"
DIMENSIONS = 256
WEIGHTS_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENIZER_SHA256 = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"

RUN_CHARACTERS_MAX = 4_096
WORD_CHARACTERS_MAX = 32
"""Longer ones rarely come again, and aren't remembered."""
WORDS_MAX = 50_000
"""About 10 MB; then the memory of words starts anew."""

ID_BYTES = 4

AWAITED_MAX = 512
"""Texts whose ids wait to be asked for again."""
AWAITED_CHARACTERS_MAX = 4_096

_WEIGHTS_FILE = Path("weights/l2_supercat_256.safetensors")
_WEIGHTS_TENSOR = "embedding.weight"
_TOKENIZER_FILE = Path("tokenizers/l2_supercat_tokenizer_config.json")

_WIDENED_AT_ONCE = 64

_SPACE: Final = "▁"
# Written out in a text, the tokenizer takes these for its own marks; so do we.
_MARK_IDS = {"<unk>": 0, "<s>": 1, "</s>": 2}
_MARKS = re.compile("(<unk>|<s>|</s>)")
# Spaces belong to the word behind them.  Possessive, so that a run of spaces is read once.
_UP_TO_MAX = f"{{1,{RUN_CHARACTERS_MAX}}}"
_WORDS = re.compile(rf"(?: {_UP_TO_MAX}+)?[^ \n]{_UP_TO_MAX}+|\n| {_UP_TO_MAX}")


class StaticModel:
    """Token ids of texts, and the table of their rows; each file is loaded at first use.

    Safe with threads and forks without a lock: threads that come first at the same time may each
    load a file, and get the same.

    Raises:
        SettingsError: at first use; the package is missing, or carries another model.
    """

    def __init__(self, *, folder: Path | None = None) -> None:
        """Read from ``folder``; None means the installed package's own."""
        self._folder = folder
        self._words: _WordIds | None = None
        self._awaited: dict[int, tuple[str, bytes]] = {}
        self._rows: TokenRows | None = None

    def token_ids(self, text: str, *, asked_again: bool = False) -> bytes:
        """Return the text's token ids as native 32-bit integers, :data:`ID_BYTES` each.

        ``asked_again`` says that they will be asked for once more: who embeds a text to keep it
        counts its tokens as well, and cutting it up is half of the work.
        """
        # By identity: it is the same object that is asked for again, and hashing takes longer.
        awaited = self._awaited.pop(id(text), None)
        if awaited is not None and awaited[0] is text:
            return awaited[1]
        words = self._load_words() if self._words is None else self._words
        if "<" not in text or _MARKS.search(text) is None:
            ids = _ids(words, text)
        else:
            ids = b"".join(
                array("i", [_MARK_IDS[part]]).tobytes() if part in _MARK_IDS else _ids(words, part)
                for part in _MARKS.split(text)
            )
        if asked_again and len(text) <= AWAITED_CHARACTERS_MAX:
            if len(self._awaited) >= AWAITED_MAX:
                self._awaited.clear()
            self._awaited[id(text)] = text, ids
        return ids

    def rows(self) -> "TokenRows":
        """Return the table of the tokens' rows."""
        return self._load_rows() if self._rows is None else self._rows

    def _load_words(self) -> "_WordIds":
        path = self._checked(_TOKENIZER_FILE, TOKENIZER_SHA256)
        from tokenizers import Tokenizer  # noqa: PLC0415 -- native code, 20 ms: only when asked

        self._words = _WordIds(Tokenizer.from_file(str(path)).model)
        return self._words

    def _load_rows(self) -> "TokenRows":
        path = self._checked(_WEIGHTS_FILE, WEIGHTS_SHA256)
        from safetensors import safe_open  # noqa: PLC0415 -- imports numpy, 70 ms

        with safe_open(str(path), framework="np") as tensors:
            self._rows = TokenRows(tensors.get_tensor(_WEIGHTS_TENSOR))
        return self._rows

    def _checked(self, file: Path, sha256: str) -> Path:
        """Return where ``file`` is, if it is the one whose vectors the tuple names."""
        path = (self._folder or _package_folder()) / file
        try:
            with path.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as cause:
            raise SettingsError(
                setting="embedder",
                problem=f"the package {PACKAGE} lacks {file.as_posix()}; install it again",
            ) from cause
        if found != sha256:
            raise SettingsError(
                setting="embedder",
                problem=f"the installed {PACKAGE} carries another {file.name} than this release "
                f"knows, and vectors of two models can't be compared; install {PACKAGE} 0.4",
            )
        return path


class TokenRows:
    """A row of :data:`DIMENSIONS` numbers for each token id, as float32.

    The file's numbers are float16, and widening them is most of the work of adding rows up.  All
    at once would take 30 ms and twice the file's 16 MB; so they are widened when they are first
    asked for, with their neighbours: a hundred texts later hardly any is left that is wanted.
    """

    def __init__(self, narrow: "npt.NDArray[np.float16]") -> None:
        import numpy as np  # noqa: PLC0415 -- 70 ms: only where something is embedded

        self._narrow = narrow
        # Memory of its own, which the system gives page by page as rows are written; numpy would
        # ask for pages of 2 MB.
        memory = mmap(-1, narrow.size * np.dtype(np.float32).itemsize, access=ACCESS_COPY)
        self._wide = np.frombuffer(memory, dtype=np.float32).reshape(narrow.shape)
        self._is_wide = np.zeros(len(narrow), dtype=np.bool_)

    def take(self, ids: "npt.NDArray[np.intc]") -> "npt.NDArray[np.float32]":
        """Return the rows of ``ids``, in their order."""
        if b"\0" in self._is_wide.take(ids).tobytes():
            for block in set((ids[~self._is_wide[ids]] // _WIDENED_AT_ONCE).tolist()):
                some = slice(block * _WIDENED_AT_ONCE, (block + 1) * _WIDENED_AT_ONCE)
                self._wide[some] = self._narrow[some]
                self._is_wide[some] = True  # Last: another thread must not find an empty row.
        return self._wide.take(ids, axis=0)


class _WordIds(dict[str, bytes]):
    """Token ids of words seen before; others are cut by the package's own tokenizer.

    One by one: to cut a text's new words together saves nothing, as they have to be told apart
    before and after.
    """

    def __init__(self, tokenizer_model: "Any") -> None:
        super().__init__()
        self._model = tokenizer_model

    def __missing__(self, word: str) -> bytes:
        spelled = word.replace(" ", _SPACE)
        try:
            tokens = self._model.tokenize(spelled)
        except UnicodeEncodeError:
            # A lone surrogate is refused at the edge; here it only must not raise.
            tokens = self._model.tokenize(spelled.encode(errors="replace").decode())
        ids = array("i", [token.id for token in tokens]).tobytes()
        if len(word) <= WORD_CHARACTERS_MAX:
            if len(self) >= WORDS_MAX:
                self.clear()
            self[word] = ids
        return ids

    @override
    def __repr__(self) -> str:
        return f"<{len(self)} words>"  # Words are private text.


def _ids(words: _WordIds, text: str) -> bytes:
    if not text:
        return b""
    spaced = " " + text.replace(_SPACE, " ")  # The tokenizer makes no difference between them.
    return b"".join(map(words.__getitem__, _cut(spaced)))


def _cut(spaced: str) -> list[str]:
    """Return the words of a text that begins with a space, each behind its own spaces."""
    if len(spaced) > RUN_CHARACTERS_MAX or "\n" in spaced or "  " in spaced:
        return _WORDS.findall(spaced)
    # Where one space stands before each word, as mostly, this gives the same in half of the time.
    return spaced.replace(" ", "\n ").split("\n")[1:]


def _package_folder() -> Path:
    spec = find_spec(PACKAGE)  # Finds it without running it.
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError(
            setting="embedder",
            problem=f"the package {PACKAGE} isn't installed; install it, or choose another "
            "embedder",
        )
    return Path(next(iter(spec.submodule_search_locations)))
