"""Credentials: what opens something, by its shape or by what it is called.

Own, bounded table.  Vendors' tokens begin with a mark of their own; everything else is looked
for where it is assigned to a telling name, and must look drawn by chance or chosen as a password:
an ordinary sentence about passwords holds none.
"""

import math
import re
from collections import Counter

from remembrancer.adapters.guards.rule import Pattern, RuleSet
from remembrancer.application.ports.guards import GuardReason

_ENTROPY_BITS_MIN = 3.0
"""Shannon entropy per character of an assigned value that counts as drawn by chance."""
_DRAWN_CHARACTERS_MIN = 16
_DIGITS_MIN = 3
"""In a value that merely stands behind a telling word."""

_WORD = "A-Za-z0-9_"
_TOKENS = (
    # id, prefix (a pattern without groups), characters of the rest, fewest, most
    ("aws-access-key", "(?:AKIA|ASIA|ABIA|ACCA)", "A-Z2-7", 16, 16),
    ("github-token", "gh[pousr]_", "A-Za-z0-9", 36, 255),
    ("github-token", "github_pat_", _WORD, 22, 255),
    ("gitlab-token", "gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas)-", f"{_WORD}.-", 20, 255),
    ("slack-token", "xox[abeoprs]-", "A-Za-z0-9-", 10, 255),
    ("slack-token", "xapp-[0-9]-", "A-Za-z0-9-", 10, 255),
    ("slack-webhook", r"hooks\.slack\.com/(?:services|workflows)/", "A-Za-z0-9/", 20, 120),
    ("stripe-key", "[rs]k_(?:live|test|prod)_", "A-Za-z0-9", 16, 255),
    ("stripe-key", "whsec_", "A-Za-z0-9+/", 24, 255),
    ("anthropic-key", "sk-ant-", f"{_WORD}-", 20, 255),
    ("openai-key", "sk-(?:proj|svcacct|admin|or-v1)-", f"{_WORD}-", 20, 255),
    ("openai-key", "sk-", "A-Za-z0-9", 32, 128),
    ("google-key", "AIza", f"{_WORD}-", 35, 35),
    ("google-key", "GOCSPX-", f"{_WORD}-", 28, 28),
    ("google-key", r"ya29\.", f"{_WORD}-", 20, 255),
    ("azure-client-secret", "[A-Za-z0-9_~.-]{3}[0-9]Q~", f"{_WORD}~.-", 31, 34),
    ("twilio-key", "SK", "0-9a-f", 32, 32),
    ("sendgrid-key", r"SG\.", f"{_WORD}.-", 60, 70),
    ("mailgun-key", "key-", "0-9a-f", 32, 32),
    ("npm-token", "npm_", "A-Za-z0-9", 36, 36),
    ("pypi-token", "pypi-", f"{_WORD}-", 50, 255),
    ("rubygems-key", "rubygems_", "0-9a-f", 48, 48),
    ("docker-token", "dckr_(?:pat|oat)_", f"{_WORD}-", 20, 64),
    ("huggingface-token", "hf_", "A-Za-z", 34, 34),
    ("digitalocean-token", "do[opr]_v1_", "0-9a-f", 64, 64),
    ("shopify-token", "shp(?:at|ca|pa|ss)_", "0-9A-Fa-f", 32, 32),
    ("databricks-token", "dapi", "0-9a-f", 32, 32),
    ("vault-token", r"hv[bsr]\.", f"{_WORD}-", 24, 255),
    ("doppler-token", r"dp\.(?:ct|pt|sa|scim|st)\.", "A-Za-z0-9.", 40, 64),
    ("linear-key", "lin_(?:api|oauth)_", "A-Za-z0-9", 32, 64),
    ("notion-token", "(?:ntn|secret)_", "A-Za-z0-9", 40, 64),
    ("grafana-token", "gl(?:sa|c)_", f"{_WORD}=+/", 32, 255),
    ("planetscale-token", "pscale_(?:tkn|pw|oauth)_", f"{_WORD}.-", 32, 64),
    ("postman-key", "PMAK-", "0-9a-f-", 40, 64),
    ("atlassian-token", "ATATT3", f"{_WORD}=-", 50, 255),
    ("figma-token", "fig[dou]_", f"{_WORD}-", 30, 64),
    ("groq-key", "gsk_", "A-Za-z0-9", 40, 64),
    ("xai-key", "xai-", "A-Za-z0-9", 60, 100),
    ("perplexity-key", "pplx-", "A-Za-z0-9", 40, 64),
    ("replicate-token", "r8_", "A-Za-z0-9", 30, 64),
    ("supabase-token", "sb(?:p|_secret)_", f"{_WORD}-", 30, 64),
    ("sentry-token", "sntry[su]_", f"{_WORD}=+/", 40, 255),
    ("new-relic-key", "NRAK-", "A-Z0-9", 27, 27),
    ("square-token", "sq0(?:atp|csp|idp)-", f"{_WORD}-", 22, 43),
    ("telegram-token", "[0-9]{8,10}:AA", f"{_WORD}-", 32, 33),
    ("discord-webhook", r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/", f"{_WORD}-", 60, 80),
    ("age-key", "AGE-SECRET-KEY-1", "0-9A-Za-z", 58, 58),
    ("onepassword-token", "ops_eyJ", f"{_WORD}=+/-", 100, 1_000),
)

_NAMES = (
    r"pass(?:word|wd|phrase|code)?|pwd|secret(?:[_ -]?key)?|token|credentials?"
    r"|(?:api|access|auth|account|client|encryption|license|master|private|refresh|secret"
    r"|service|session|shared[_ -]?access|signing|storage|webhook)[_ -]?(?:key|secret|token|pass)"
    r"|kennwort|passwort|mot de passe|contrasena|contraseña|senha|wachtwoord|haslo|hasło|parola"
    r"|losenord|lösenord|adgangskode|salasana|heslo|jelszo|jelszó|sifre|şifre"
    r"|пароль|كلمة المرور|密码|密碼|パスワード|暗証番号|비밀번호"
)
_NAME_WORDS = (
    "pass", "pwd", "secret", "token", "credential", "key", "kennwort", "contrase", "senha",
    "wachtwoord", "haslo", "hasło", "parola", "losenord", "lösenord", "adgangskode", "salasana",
    "heslo", "jelsz", "sifre", "şifre", "пароль", "كلمة المرور", "密", "パスワード", "暗証番号",
    "비밀번호",
)  # fmt: skip
_ASSIGNED = (
    r"[\"'`*]{0,2}[ \t]{0,8}+(?:=>|:=|[=:\uff1a]|\b(?:is|are|was|ist|lautet|est|es|è|är|это)\b"
    r"|は|是|는|은)"
    r"[ \t]{0,8}+[\"'`*]{0,2}([^\s\"'`,;<>]{4,255})"
)

_EXAMPLE = re.compile("example", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"(?:x{3,}|\*{3,}|\.{3,}|<.*|\$[{(\w].*|\{.*|%.*|your[_-].*|my[_-].*|example.*|changeme|"
    r"redacted.*|\[.*|none|null|true|false|todo.*|placeholder.*|dummy.*|undefined)",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[A-Za-z_][\w.]{0,64}[(\[]|https?://|[./~][\w./-]*$|[\d.:/-]+$|v?\d+(?:\.\d+)+"
)

_MANUAL_PASSWORDS = {"pass", "passwd", "password", "pwd", "secret"}
"""What manuals write where the password goes."""
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_LONG_WORD = re.compile(r"[A-Za-z]{12}")


def _bits_a_character(value: str) -> float:
    length = len(value)
    return -sum(n / length * math.log2(n / length) for n in Counter(value).values())


def _not_an_example(match: re.Match[str]) -> bool:
    # Without the word it must be too short: "EXAMPLE" behind a real one doesn't make it one.
    rest = _EXAMPLE.sub("", match[0])
    return rest == match[0] or match.re.search(rest) is not None


def _looks_drawn(value: str) -> bool:
    kinds = (
        any(map(str.isdigit, value))
        + any(map(str.isupper, value))
        + any(map(str.islower, value))
        + any(not character.isalnum() for character in value)
    )
    return (
        len(value) >= _DRAWN_CHARACTERS_MIN
        and kinds > 1
        and any(map(str.isdigit, value))
        and _bits_a_character(value) >= _ENTROPY_BITS_MIN
    )


def _looks_chosen(value: str) -> bool:
    letter = any(map(str.isalpha, value))
    other = any(character.isdigit() or character in "!@#$%^&*?+=~" for character in value)
    return len(value) >= 6 and letter and other  # noqa: PLR2004 - shorter ones open nothing


def _assigned_secret(match: re.Match[str]) -> bool:
    value = match[match.lastindex or 0].rstrip(".!?)]}")
    if _PLACEHOLDER.fullmatch(value) or _CODE.match(value):
        return False
    return _looks_drawn(value) or _looks_chosen(value)


def _named_random_value(match: re.Match[str]) -> bool:
    value = match[1]
    return (
        sum(map(str.isdigit, value)) >= _DIGITS_MIN
        and _UUID.fullmatch(value) is None
        and _LONG_WORD.search(value) is None
        and _PLACEHOLDER.fullmatch(value) is None
        and _looks_drawn(value)
    )


def _real_password(match: re.Match[str]) -> bool:
    value = match[1]
    return value.lower() not in _MANUAL_PASSWORDS and _PLACEHOLDER.fullmatch(value) is None


def _drawn_value(match: re.Match[str]) -> bool:
    return _PLACEHOLDER.fullmatch(match[1]) is None and _looks_drawn(match[1])


def _token(rule_id: str, prefix: str, rest: str, fewest: int, most: int) -> Pattern:
    # Starts only where no word is under way, and takes each run once: no start is tried twice.
    pattern = f"(?<![A-Za-z0-9]){prefix}[{rest}]{{{fewest},{most}}}+"
    literal = re.match(r"[A-Za-z0-9_-]*", re.sub(r"\(\?:.*?\)|\[.*?\](?:\{.*?\})?", "\0", prefix))
    word = literal[0].lower() if literal else ""
    return Pattern(rule_id, (word,) if word else (), re.compile(pattern), _not_an_example)


_TOKEN_RULES = tuple(_token(*row) for row in _TOKENS)
_OTHERS = (
    Pattern(
        "private-key",
        ("private key", "putty-user-key-file"),
        re.compile(
            r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[23]:"
        ),
    ),
    Pattern(
        "json-web-token",
        ("eyj",),
        re.compile(
            r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,2048}+\.eyJ[A-Za-z0-9_-]{8,4096}+\."
            r"[A-Za-z0-9_-]{8,1024}+"
        ),
    ),
    Pattern(
        "password-in-url",
        ("://",),
        re.compile(r"(?<=[A-Za-z0-9])://[^\s/:@]{0,128}+:([^\s/@]{3,255}+)@[^\s/@]"),
        _real_password,
    ),
    Pattern(
        "authorization",
        ("bearer", "basic", "authorization"),
        re.compile(
            r"\b(?:Bearer|Basic|Authorization: {0,4}(?:Token|ApiKey)) {1,4}"
            r"([A-Za-z0-9._~+/-]{12,4096}+)",
            re.IGNORECASE,
        ),
        _drawn_value,
    ),
    Pattern(
        "azure-signature",
        ("sig=",),
        re.compile(r"[?&;]sig=([A-Za-z0-9%+/]{40,255}+)"),
        _drawn_value,
    ),
    Pattern(
        "secret-on-command-line",
        ("--pass", "--token", "--secret", "--api-key", "sshpass", "curl"),
        re.compile(
            r"--(?:pass(?:word)?|token|secret|api-key)[ =][\"']?([^\s\"']{4,255})"
            r"|\bsshpass -p ?[\"']?([^\s\"']{4,255})"
            r"|\bcurl [^\n]{0,200}?-u ?[\"']?[^\s:\"']{1,64}:([^\s\"']{4,128})"
        ),
        _assigned_secret,
    ),
    Pattern(
        "named-random-value",
        ("key", "secret", "token", "private", "access", "auth", "credential", "passw"),
        re.compile(
            r"(?:key|secret|token|private|access|auth|credentials?|passw(?:or)?d)"
            r"[\"'`]?[\s=:>-]{1,8}[\"'`]?([A-Za-z0-9_+=.-]{20,255}+)",
            re.IGNORECASE,
        ),
        _named_random_value,
    ),
    Pattern(
        "netrc",
        ("login",),
        re.compile(r"\blogin\s{1,8}\S{1,128}\s{1,8}password\s{1,8}(\S{3,255})", re.IGNORECASE),
        _real_password,
    ),
    Pattern(
        "secret-in-element",
        _NAME_WORDS,
        re.compile(
            rf"(?:{_NAMES})[^<>\n]{{0,40}}>[ \t]{{0,8}}+([^\s<>]{{4,255}})[ \t]{{0,8}}+</",
            re.IGNORECASE,
        ),
        _assigned_secret,
    ),
    Pattern(
        "assigned-secret",
        _NAME_WORDS,
        re.compile(f"(?:{_NAMES}){_ASSIGNED}", re.IGNORECASE),
        _assigned_secret,
    ),
)

CREDENTIALS = RuleSet(
    "credentials@1",
    GuardReason.CREDENTIAL,
    (*_TOKEN_RULES, *_OTHERS),
    judged_by=(
        str((_ENTROPY_BITS_MIN, _DRAWN_CHARACTERS_MIN, _DIGITS_MIN)),
        *(one.pattern for one in (_EXAMPLE, _PLACEHOLDER, _CODE, _UUID, _LONG_WORD)),
        *sorted(_MANUAL_PASSWORDS),
    ),
)
