"""The edge: values from outside become value objects here, or a typed error.

Names (tenant, owner, scope, ...) are compared byte for byte everywhere, so they are normalised
to NFC once, here; an original's own text is never changed.
"""

import re
import unicodedata
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from remembrancer.domain.errors import InvalidInputError

NAME_CHARACTERS_MAX = 256
TEXT_BYTES_MAX = 1_048_576
"""An entry's text, a question: 1 MiB of UTF-8."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _encodable(value: str) -> None:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("holds a lone surrogate, which isn't valid Unicode") from None


def _name(value: str) -> str:
    # As most are: in ASCII, which is in NFC as it stands, without controls, short and not blank.
    if value.isascii() and value.isprintable() and len(value) <= NAME_CHARACTERS_MAX:
        if not value or value.isspace():
            raise ValueError("must not be blank")
        return value[:]  # Of a subclass of str, only the string.
    _encodable(value)
    # Bounded before and after: NFC can shorten a name to a third, and lengthen it too.
    normal = unicodedata.normalize("NFC", value[: 4 * NAME_CHARACTERS_MAX])
    if len(normal) > NAME_CHARACTERS_MAX or len(value) > 4 * NAME_CHARACTERS_MAX:
        raise ValueError(f"must not be longer than {NAME_CHARACTERS_MAX} characters")
    if not normal.strip():
        raise ValueError("must not be blank")
    if _CONTROL.search(normal):
        raise ValueError("must not hold control characters or line breaks")
    return normal


def _text(value: str) -> str:
    _encodable(value)
    # Four bytes a character at most: only long texts are worth encoding to measure.
    if len(value) * 4 > TEXT_BYTES_MAX and len(value.encode()) > TEXT_BYTES_MAX:
        raise ValueError(f"is longer than {TEXT_BYTES_MAX} UTF-8 bytes; split it")
    return value


def _filled(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


Name = Annotated[str, AfterValidator(_name)]
"""A name or id given by the host: 1 to 256 characters of NFC, no control characters."""

Text = Annotated[str, AfterValidator(_text)]
"""Any text of at most 1 MiB of UTF-8, also empty; never normalised."""

FilledText = Annotated[Text, AfterValidator(_filled)]
"""A text that says something."""


def parsed_name(value: object, *, field: str) -> str:
    """Return a name that is given alone, outside a value object, as it is kept and compared.

    Raises:
        InvalidInputError: it breaks the bounds of a :data:`Name`.
    """
    problem = "must be a string"
    if isinstance(value, str):
        try:
            return _name(value)
        except ValueError as error:
            problem = str(error)
    # Raised outside, since what was caught may hold the value.
    raise InvalidInputError(field=field, problem=problem)


class Parsed(BaseModel):
    """A frozen value object that is checked when it is made.

    Raises:
        InvalidInputError: from the constructor and from :meth:`parse`; it names the field and
            the rule, never the value, and drops pydantic's own error, which holds it.
    """

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False
    )

    if not TYPE_CHECKING:  # The type checker keeps pydantic's own signature.

        def __init__(self, /, **values: Any) -> None:
            try:
                # As pydantic's own does, which would take the values apart once more.
                self.__pydantic_validator__.validate_python(values, self_instance=self)
            except ValidationError as error:
                refusal = _refusal(type(self), error)
            else:
                return
            raise refusal

        def __setattr__(self, name: str, value: object, /) -> None:
            # Pydantic's own error would show the value.
            raise InvalidInputError(
                field=type(self).__name__, problem="can't be changed; make another one"
            )

    @classmethod
    def parse(cls, values: object) -> Self:
        """Make one from plain data, such as decoded JSON.

        Raises:
            InvalidInputError: as the constructor.
        """
        if not isinstance(values, dict):
            raise InvalidInputError(field=cls.__name__, problem="must be an object")
        return cls(**{str(key): value for key, value in values.items()})


_PLAIN = (
    (re.compile(r"^(Value error|Assertion failed), "), ""),
    (re.compile(r"^Field required$"), "is missing"),
    (re.compile(r"^Input is not a valid path for .*$"), "must be a path"),
    (re.compile(r"^\w+ should (be|have|match) "), r"must \1 "),
    (re.compile(r", unable to (parse|interpret) .*$"), ""),
    (re.compile(r"^must be a valid "), "must be a "),
    (re.compile(r"^must be a (integer|object|email)"), r"must be an \1"),
    (re.compile(r"^must be an integer(, got a number .*)?$"), "must be a whole number"),
    (re.compile(r"^must be a boolean$"), "must be true or false"),
    (re.compile(r"^must be a tuple$"), "must be a list"),
    (re.compile(r"^must be a dictionary( or instance of .*)?$"), "must hold keys and values"),
    (re.compile(r" after validation, not (more|\d+)$"), ""),
    (re.compile(r"greater than or equal to (\S+)$"), r"\1 or more"),
    (re.compile(r"less than or equal to (\S+)$"), r"\1 or less"),
)
"""What is said instead of pydantic's standing phrases, one after the other."""


def plain(message: str) -> str:
    """Return one of pydantic's messages so that it goes on after the name of a field."""
    for phrase, plain in _PLAIN:
        message = phrase.sub(plain, message)
    return message


def _refusal(model: type[BaseModel], error: ValidationError) -> InvalidInputError:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    # Keys of a mapping are values from outside: only names of our own fields are shown.
    known = [str(part) for part in first["loc"][:1] if part in model.model_fields]
    if first["type"] == "extra_forbidden":
        problem = "unknown field; known are " + ", ".join(model.model_fields)
    else:
        problem = plain(first["msg"])
    return InvalidInputError(field=".".join([model.__name__, *known]), problem=problem)
