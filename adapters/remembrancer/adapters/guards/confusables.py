"""Letters that look like Latin ones, folded: our own, bounded table.

Cyrillic, Greek, Armenian and Cherokee letters that a reader takes for Latin, and typographic
marks that stand for ASCII ones.  Compatibility forms (full width, mathematical, circled) are not
here: NFKC folds those.  A text in these scripts becomes nonsense by folding; that is why rules
also run on the unfolded view.
"""

CONFUSABLES_VERSION = "confusables@1"

_LOOKALIKES = {
    "a": "\u0430\u03b1\u0251\u13aa",
    "b": "\u044c\u13cf",
    "c": "\u0441\u03f2\u1d04\u217d",
    "d": "\u0501\u217e\u13e7",
    "e": "\u0435\u0454\u03b5\u212e\u04bd",
    "f": "\u03dd\u0192",
    "g": "\u0261\u0581\u018d",
    "h": "\u04bb\u0570\u13c2",
    "i": "\u0456\u03b9\u0131\u0269\u1d09\u04cf",
    "j": "\u0458\u03f3",
    "k": "\u043a\u03ba",
    "l": "\u217c\u01c0\u2113",
    "m": "\u043c\u217f",
    "n": "\u0578\u057c\u03b7\u0438",
    "o": "\u043e\u03bf\u03c3\u0585\u0d20\u0966",
    "p": "\u0440\u03c1\u2374",
    "q": "\u051b\u0563",
    "r": "\u0433\u1d26",
    "s": "\u0455\ua731\u01bd",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d\u1d1c\u028b",
    "v": "\u03bd\u0475\u1d20",
    "w": "\u051d\u0461\u03c9\u0561\u1d21",
    "x": "\u0445\u03c7\u00d7",
    "y": "\u0443\u03b3\u04af",
    "z": "\u1d22\u03b6",
    "A": "\u0410\u0391\u13aa",
    "B": "\u0412\u0392\u13f4",
    "C": "\u0421\u03f9\u13df",
    "D": "\u13a0",
    "E": "\u0415\u0395\u13ac",
    "F": "\u03dc",
    "G": "\u050c\u13c0",
    "H": "\u041d\u0397\u13bb",
    "I": "\u0406\u0399\u04c0",
    "J": "\u0408\u13ab",
    "K": "\u041a\u039a\u13e6",
    "L": "\u13de",
    "M": "\u041c\u039c\u13b7",
    "N": "\u039d",
    "O": "\u041e\u039f\u0555",
    "P": "\u0420\u03a1\u13e2",
    "Q": "\u051a",
    "R": "\u13a1",
    "S": "\u0405\u054f\u13da",
    "T": "\u0422\u03a4\u13a2",
    "U": "\u054d",
    "V": "\u0474\u13d9",
    "W": "\u051c\u13b3",
    "X": "\u0425\u03a7",
    "Y": "\u0423\u03a5\u04ae",
    "Z": "\u0396\u13c3",
    "0": "\u0d66",
    "3": "\u0417\u0437",
    "'": "\u2018\u2019\u02bc\u02b9",
    '"': "\u201c\u201d\u201e",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2212\u02d7",
    "/": "\u2044\u2215",
    ":": "\u2236\ua789\u0589",
    "<": "\u2039\u02c2",
    ">": "\u203a\u02c3",
    "|": "\u01c0\u2223",
}

CONFUSABLES = {
    ord(lookalike): latin for latin, lookalikes in _LOOKALIKES.items() for lookalike in lookalikes
}
"""Code point to ASCII character, for ``str.translate``."""
