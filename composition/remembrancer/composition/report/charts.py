"""The charts library, as one script to put into a page.

It comes from a package, not from this repository, and from no network (adr/0025).
"""

from dataclasses import dataclass

from remembrancer.domain.errors import SettingsError

EXTRA = "report"

_BUNDLE = "window.vegaEmbed = vegaEmbed;"
"""What the bundle is to do: it leaves nothing else behind."""


@dataclass(frozen=True, slots=True)
class ChartLibrary:
    """A script that defines ``vegaEmbed``."""

    script: str
    versions: str


def chart_library() -> ChartLibrary:
    """Return Vega, Vega-Lite and Vega-Embed as bundled by vl-convert; takes a second or two.

    Raises:
        SettingsError: the extra ``report`` isn't installed.
    """
    try:
        import vl_convert  # noqa: PLC0415  # an extra, of 80 MB
    except ImportError:
        problem = f"needs the extra {EXTRA}: pip install 'remembrancer[{EXTRA}]'"
        raise SettingsError(setting="--html", problem=problem) from None
    versions = f"{vl_convert.get_vega_version()}, {vl_convert.get_vegalite_versions()[-1]}"
    return ChartLibrary(script=alone(vl_convert.javascript_bundle(_BUNDLE)), versions=versions)


def alone(script: str) -> str:
    """Return a script that shares no names with others, and in which nothing ends its element."""
    # Inside strings and patterns, the only places where these may stand, both mean the same.
    closed = script.replace("</script", r"<\/script").replace("<!--", r"\x3c!--")
    return f"(() => {{\n{closed}\n}})();"
