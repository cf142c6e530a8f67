"""Classification: what in a text makes it more sensitive than its label says.

Numbers count only where their check digits (cards, IBAN) or their form (e-mail, telephone) prove
what they are.  Rules raise the sensitivity, nothing lowers it.
"""

import re
from collections.abc import Iterator

from remembrancer.adapters.guards.rule import RuleSet
from remembrancer.application.ports.guards import GuardReason
from remembrancer.domain.sensitivity import Sensitivity

_CARD_LENGTHS = range(13, 20)
_GROUP_MIN = 3
"""Digits a group in a card's number: shorter ones are dates, times and versions."""
_GROUPS_MAX = _CARD_LENGTHS.stop // _GROUP_MIN + 1
_PHONE_LENGTHS = range(8, 16)
"""E.164 allows fifteen digits; below eight, anything looks like a number to call."""
_NATIONAL_DIGITS = 10
"""What follows country codes 1 and 7."""
_IBAN_LENGTHS = {
    code: length
    for length, codes in {
        15: "NO",
        16: "BE",
        18: "DK FI FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
    for code in codes.split()
}
_VALUES = bytes.maketrans(b"0123456789", bytes(range(10)))
_DOUBLED = bytes.maketrans(b"0123456789", bytes([0, 2, 4, 6, 8, 1, 3, 5, 7, 9]))
"""Twice a digit, its own digits added."""

_DIGIT_RUNS = re.compile(r"(?<![0-9A-Za-z])[0-9](?:[ .-]?[0-9])*+(?![A-Za-z])")
_IBAN = re.compile(r"(?<![A-Z0-9])[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,40}+", re.IGNORECASE)
_EMAIL = re.compile(
    r"(?<=[\w+%-])(?<!\bgit)@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])"
)
_PHONE = re.compile(
    r"(?<![\w+])(?:\+|(?<![0-9] )00(?=[1-9]))((?:[ ./()-]{0,2}[0-9]){8,15})(?![0-9])"
    r"|(?<![\w.-])(\(?[2-9][0-9]{2}\)?[ .-][2-9][0-9]{2}[ .-][0-9]{4})(?![\w-])"
    r"|(?:\b(?:tel|phone|call|mobile|cell|fax|whatsapp|handy|telefon|telefoon|telefone"
    r"|tel[eé]fono|t[eé]l[eé]phone|m[oó]vil)\b|电话|電話|手机|телефон|전화)"
    r"[^0-9\n+]{0,24}((?:[0-9][ ./()-]{0,2}){7,15})",
    re.IGNORECASE,
)
_NOT_A_DIGIT = re.compile(r"[^0-9]")


class PaymentCard:
    """A number of a card brand's length and beginning whose Luhn sum is right."""

    id = "payment-card"
    source = ("payment-card", _DIGIT_RUNS.pattern, "luhn")

    def found_in(self, text: str, lowered: str) -> bool:
        """Return whether any groups of digits in a row make a card number."""
        del lowered
        return any(_is_card(number) for number in _numbers(text))


class BankAccount:
    """An IBAN of its country's length with a remainder of 1 modulo 97 (ISO 13616)."""

    id = "iban"
    source = ("iban", _IBAN.pattern, str(sorted(_IBAN_LENGTHS.items())))

    def found_in(self, text: str, lowered: str) -> bool:
        """Return whether an IBAN is there, in groups or not."""
        del lowered
        return any(_is_iban(match[0]) for match in _IBAN.finditer(text))


class EmailAddress:
    """An address of the form that mail servers take."""

    id = "e-mail"
    source = ("e-mail", _EMAIL.pattern)

    def found_in(self, text: str, lowered: str) -> bool:
        """Return whether an address is there."""
        del lowered
        return _EMAIL.search(text) is not None


class TelephoneNumber:
    """International, North American, or said to be one."""

    id = "telephone"
    source = ("telephone", _PHONE.pattern, str(_PHONE_LENGTHS))

    def found_in(self, text: str, lowered: str) -> bool:
        """Return whether a number to call is there."""
        del lowered
        return any(map(_is_telephone, _PHONE.finditer(text)))


RAISES_TO = {
    "payment-card": Sensitivity.RESTRICTED,
    "iban": Sensitivity.RESTRICTED,
    "e-mail": Sensitivity.CONFIDENTIAL,
    "telephone": Sensitivity.CONFIDENTIAL,
}
CLASSIFICATION = RuleSet(
    "classification@1",
    GuardReason.CLASSIFICATION,
    (PaymentCard(), BankAccount(), EmailAddress(), TelephoneNumber()),
    judged_by=(
        str((_CARD_LENGTHS, _GROUP_MIN, _GROUPS_MAX, _PHONE_LENGTHS, _NATIONAL_DIGITS)),
        *(f"{rule}: {sensitivity.value}" for rule, sensitivity in sorted(RAISES_TO.items())),
    ),
)


def _is_telephone(match: re.Match[str]) -> bool:
    digits = _NOT_A_DIGIT.sub("", match[match.lastindex or 0])
    if match[1] is None:
        return True  # Said to be one, or written as North Americans do.
    if digits[0] in "17":
        return len(digits) == 1 + _NATIONAL_DIGITS
    return len(digits) in _PHONE_LENGTHS


def _numbers(text: str) -> Iterator[str]:
    """Yield digits that stand in groups side by side, of any card's length."""
    for run in _DIGIT_RUNS.findall(text):
        groups = re.split(r"[ .-]", run)
        for start, group in enumerate(groups):
            if len(group) < _GROUP_MIN:
                continue
            number = ""
            for following in groups[start : start + _GROUPS_MAX]:
                number += following
                if len(number) >= _CARD_LENGTHS.stop or len(following) < _GROUP_MIN:
                    break
                if len(number) in _CARD_LENGTHS:
                    yield number


def _is_card(number: str) -> bool:
    length, first = len(number), number[0]
    brand = (
        (first == "4" and length in {13, 16, 19})
        or (first == "5" and length == 16 and number[1] in "12345")  # noqa: PLR2004  # a brand's
        or (first == "2" and length == 16 and "2221" <= number[:4] <= "2720")  # noqa: PLR2004  # a brand's
        or (number[:2] in {"34", "37"} and length == 15)  # noqa: PLR2004  # a brand's
        or (number[:2] in {"30", "36", "38", "39"} and length in {14, 16, 19})
        or (number[:2] in {"35", "60", "62", "64", "65", "81"} and length in {16, 17, 18, 19})
        or (number[:2] in {"50", "56", "57", "58", "63", "67"} and length in _CARD_LENGTHS)
    )
    return brand and _luhn(number.encode())


def _luhn(digits: bytes) -> bool:
    plain, doubled = digits[-1::-2], digits[-2::-2]
    return (sum(plain.translate(_VALUES)) + sum(doubled.translate(_DOUBLED))) % 10 == 0


def _is_iban(found: str) -> bool:
    compact = re.sub("[ -]", "", found).upper()
    length = _IBAN_LENGTHS.get(compact[:2])
    if length is None or len(compact) < length:
        return False
    turned = compact[4:length] + compact[:4]
    return int("".join(str(int(character, 36)) for character in turned)) % 97 == 1
