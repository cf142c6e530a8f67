"""Injection: text that is built to steer a model rather than to say something.

Structure, not meaning: tokens of chat templates, forged fences, characters that nobody sees,
links made to carry data away, and the plea to ignore what was said before, in many languages.
Packages that judge by meaning found 4 to 16 of 24 attacks; these rules decide egress and give a
label, the barrier itself is the pack's fences (design 4.1, adr/0012).
"""

import re
from bisect import bisect_left
from dataclasses import dataclass

from remembrancer.adapters.guards.rule import Pattern, RuleSet
from remembrancer.application.ports.guards import GuardReason

_NEAR_CHARACTERS = 90
"""How far a plea's parts may stand from its verb, within one sentence."""

_FLAGS = (
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067"
    "|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
"""The flags of England, Scotland and Wales: the only tag characters with a use."""

# Looked for in lower case: ignoring case over so many letters would take five times as long.
_VERBS = re.compile(
    r"(?<![a-z.])(?:ignor|forget)|disregard|overrid|overrule|pay no attention|do not follow|"
    r"don'?t follow|stop following|neglect|"  # English; ignor- also German, French, Spanish, ...
    r"missacht|au(?:ß|ss)er acht|setzt? (?:dich|euch) über|setze dich über|"
    r"setze dich uber|vergiss|vergesst|beachte\b.{0,20}\bnicht|befolge\b.{0,20}\bnicht|"  # German
    r"oublie|ne tiens? pas compte|ne tenez pas compte|ne suis pas|"  # French
    r"ne suivez pas|fai(?:s|tes) abstraction|ne respecte|n['\u2019]obei|n['\u2019]obéi|"
    r"olvid|haz caso omiso|no hagas caso|descarta|omite|"  # Spanish
    r"no (?:sigas|sigan|siga|obede|cumpl|respet)|"
    r"non seguire|n[aã]o sig|"
    r"dimentica|trascura|esqueca|esqueça|desconsidere|desconsidera|"  # Italian, Portuguese
    r"negeer|vergeet|zignoruj|pomin|pomiń|zapomnij|"  # Dutch, Polish
    r"игнорир|забудь|не обращай внимания|не следуй|не выполняй|не соблюдай|отбрось|"
    r"проігнор|ігнору|"  # Russian, Ukrainian
    r"yok say|gormezden gel|görmezden gel|unut|"  # Turkish
    r"bortse fran|glom|glöm|"  # Swedish
    r"无视|無視|忽略|忽视|忽視|忘记|忘記|不要理会|"  # Chinese, Japanese
    r"不要遵|不要执行|不要執行|不要服从|停止遵|"
    r"忘れ|従わな|従うな|守らな|破棄|무시|잊어|따르지 마|"  # Japanese, Korean
    r"تجاهل|انس|अनदेखा|नज़रअंदाज|नजरअंदाज|भूल|abaikan|lupakan|bỏ qua|bo qua"
)
_BEFORE = re.compile(
    r"previous|prior|preceding|above|earlier|foregoing|before|all|any|every|your|initial|system|"
    r"vorherig|vorig|vorangegangen|bisherig|obig|oben|alle|sämtlich|deine|"
    r"precedent|précédent|ci-dessus|anterieur|antérieur|tout|vos |tes |"
    r"anterior|previ|arriba|todas|todos|tus |precedent|sopra|tutte|tutti|acima|suas|"
    r"vorige|eerdere|bovenstaande|poprzedni|powyzsz|powyższ|wszystk|"
    r"предыдущ|выше|прежни|все|попередн|усі|всі|"  # noqa: RUF001 - meant
    r"onceki|önceki|yukaridaki|yukarıdaki|tum |tüm |tidigare|ovanstaende|ovanstående|"  # noqa: RUF001 - meant
    r"之前|以上|上面|上述|先前|前面|所有|前の|これまで|すべて|全て|上記|이전|위의|앞의|모든|"
    r"السابق|أعلاه|جميع|كل|पिछल|उपरोक्त|सभी|sebelumnya|di atas|semua|truoc|trước|tren|trên"
)
_ORDERS = re.compile(
    r"instruction|instruktion|prompt|"
    r"directi(?:ve|on)|you were told|been told|gesagt wurde|"
    r"guideline|\brules?\b|\borders?\b|command|"
    r"constraint|guardrail|restriction|safety|programming|context|conversation|"
    r"anweisung|vorgabe|\bregeln?\b|befehl|consigne|regle|règle|directiv|instruccion|\breglas\b|"
    r"indicacion|istruzion|\bregole\b|instrucoes|instruções|\bregras\b|instructies|\bregels\b|"
    r"instrukcj|polecen|zasad|инструкц|указани|правил|команд|інструкц|вказівк|"
    r"talimat|komut|kural|指示|指令|说明|說明|规则|規則|提示|命令|ルール|プロンプト|"
    r"지시|명령|규칙|프롬프트|تعليمات|الأوامر|التوجيهات|निर्देश|आदेश|instruksi|perintah|"
    r"huong dan|hướng dẫn|chi thi|chỉ thị"
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|[\u3002\uff01\uff1f\u061f\u0964]|\n\s{0,8}\n")


@dataclass(frozen=True, slots=True)
class Plea:
    """A verb of ignoring with "what came before" and "orders" near it, in one sentence.

    The parts may come in any order, as languages do.  Each part is looked for once over the whole
    text and their places compared: linear, however often each of them occurs.
    """

    id: str

    @property
    def source(self) -> tuple[str, ...]:
        """The patterns and the distance."""
        parts = (_VERBS, _BEFORE, _ORDERS, _SENTENCE_END)
        return (self.id, str(_NEAR_CHARACTERS), *(part.pattern for part in parts))

    def found_in(self, text: str, lowered: str) -> bool:
        """Return whether all three stand near each other."""
        del text
        verbs = _places(_VERBS, lowered)
        if not verbs:
            return False
        orders = _places(_ORDERS, lowered)
        before = _places(_BEFORE, lowered) if orders else []
        if not before:
            return False
        ends = _places(_SENTENCE_END, lowered)
        return any(_near(before, verb, ends) and _near(orders, verb, ends) for verb in verbs)


def _places(pattern: re.Pattern[str], text: str) -> list[int]:
    return [match.start() for match in pattern.finditer(text)]


def _near(places: list[int], verb: int, ends: list[int]) -> bool:
    """Return whether one of the sorted places is near ``verb`` with no sentence end between."""
    following = bisect_left(places, verb)
    sentence = bisect_left(ends, verb)
    return any(
        abs(places[index] - verb) <= _NEAR_CHARACTERS
        and bisect_left(ends, places[index]) == sentence
        for index in (following - 1, following)
        if 0 <= index < len(places)
    )


def _pattern(rule_id: str, words: tuple[str, ...], pattern: str) -> Pattern:
    return Pattern(rule_id, words, re.compile(pattern, re.IGNORECASE))


INJECTION = RuleSet(
    "injection@1",
    GuardReason.INJECTION,
    (
        _pattern(
            "chat-template",
            ("<|", "[inst", "[/inst", "<<sys", "<</sys", "_of_turn>", "_header", "### "),
            r"<\|[a-z_ \u2581]{2,32}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>"
            r"|(?:^|\n)### {0,2}(?:instructions?|system(?: prompt)?):",
        ),
        _pattern(
            "role-tag",
            ("<",),
            r"</?\s{0,4}(?:system|assistant|developer|memory|context|instructions?)"
            r"(?:[_-]?(?:prompt|message|instructions?))?\s{0,4}/?>",
        ),
        _pattern(
            "forged-fence", ("<<",), r"<{2,3}\s{0,8}(?:memory|end|gone)\b|\bgone [0-9a-f]{16}\b"
        ),
        _pattern(
            "tag-characters",
            (),
            f"(?:(?!{_FLAGS})(?<![\\U000e0020-\\U000e007f\\U0001f3f4])"
            "[\U000e0000-\U000e007f])|"
            f"\U0001f3f4(?=[\U000e0020-\U000e007f])(?!{_FLAGS[1:]})",
        ),
        _pattern("bidirectional-controls", (), "[\u202a-\u202e\u2066-\u2069]"),
        _pattern(
            "invisible-characters",
            (),
            # Between Latin letters none of these has a use; in a row they carry hidden bytes.
            "(?<=[A-Za-z0-9])[\u200b-\u200d\u2060-\u2064\u180e\u3164\u115f\u1160\uffa0\ufeff]{1,64}"
            "(?=[A-Za-z0-9])"
            "|[\u200b-\u200f\u2060-\u2064\ufeff\u180e\u3164\uffa0]{4}"
            "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}|(?<=[\x20-\x7e])[\U000e0100-\U000e01ef]",
        ),
        _pattern(
            "exfiltration-link",
            ("://", "javascript:", "data:text"),
            # An image that is fetched with data in its address; an address with a gap to fill;
            # hosts whose only use is to see who calls.
            r"!\[[^\]\n]{0,200}\]\(\s{0,4}https?://[^\s)]{1,512}?[?#{$]"
            r"|<img[^>]{0,200}?\bsrc\s{0,4}=\s{0,4}[\"']?https?://[^\s>]{1,512}?[?{$]"
            r"|https?://[^\s?]{1,256}+\?[^\s{}]{0,256}?=(?:\{{1,2}|\$\{)[a-z_ .-]{2,40}\}"
            r"|https?://(?:[\w-]{1,63}\.){0,4}(?:webhook\.site|requestbin\.\w{2,4}|pipedream\.net"
            r"|ngrok(?:-free)?\.(?:io|app|dev)|burpcollaborator\.net|oast\.\w{2,6}|interact\.sh"
            r"|oastify\.com|canarytokens\.\w{2,4}|hookbin\.com|beeceptor\.com)"
            r"|\]\(\s{0,4}(?:javascript|data:text)",
        ),
        _pattern(
            "send-it-away",
            ("://",),
            r"\b(?:send|post|forward|upload|transmit|exfiltrate|leak|append|submit)\b"
            r"[^\n]{0,80}?\b(?:conversation|history|context|memor(?:y|ies)|secrets?|keys?|tokens?"
            r"|passwords?|credentials?|system prompt|everything)\b[^\n]{0,40}?\bhttps?://",
        ),
        _pattern(
            "new-authority",
            (
                "you are now",
                "from now on",
                " mode",
                "prompt",
                "instructions",
                "do not ",
                "safety",
                "guardrail",
                "restriction",
                "filter",
                "override",
            ),
            r"\b(?:reveal|print|show|output|repeat|leak|display|tell me)\b[^\n.]{0,40}?"
            r"\b(?:your|system|hidden|initial) (?:system )?(?:prompt|instructions)\b"
            r"|\b(?:bypass|disable|turn off|remove) (?:all |any |your |the )?"
            r"(?:safety(?! (?:checks?|nets?) (?:in|of|for)\b)|guardrails?"
            r"|content filters?|restrictions)\b"
            r"|\byou are now (?:in |an? )?(?:dan|developer mode|jailbroken|unrestricted|free|evil"
            r"|the system)\b"
            r"|(?:^|\n)[ \t>#*]{0,8}(?:new (?:system )?instructions?|system override):"
            r"|\bact as (?:if|though) you ha(?:d|ve) no (?:restrictions?|rules|limits|filters?)\b"
            r"|\bfrom now on,? you (?:are|will|must|have no)\b"
            r"|\b(?:enable|enter|activate) (?:developer|god|dan|jailbreak) mode\b"
            r"|\bdo not (?:tell|inform|alert|mention (?:this|it) to) the user\b",
        ),
        Plea("ignore-the-above"),
        _pattern(
            "ignore-the-above-plain",
            ("above", "previous", "obige", "precede", "anterior", "以上", "上記"),
            r"\b(?:ignore|disregard|forget) (?:(?:all|everything|anything) )?(?:of )?(?:the )?"
            r"(?:above|previous|preceding)\s{0,4}(?:[.,:;!\n]|and\b|$)"
            r"|(?:无视|忽略)以上|上記を無視|以上を無視",
        ),
    ),
)
