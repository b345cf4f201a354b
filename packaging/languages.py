"""The app's languages: finds the texts in the code, brings `claw_local/data/locale` up to date, and compiles it.

    python packaging/languages.py          # after a text was added or changed; then translate what is new
    python packaging/languages.py --check  # says what is missing, and changes nothing

A translation is a `msgstr` in `claw_local/data/locale/LANGUAGE/LC_MESSAGES/claw_local.po`. Needs Babel (extra `dev`).
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from babel.messages import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parent.parent
LOCALE = ROOT / "claw_local" / "data" / "locale"
SOURCES = ("claw_local", "app", "trainer")
KEYWORDS = {"_": None, "N_": None, "ngettext": (1, 2)}
NAME = "claw_local"
WIDTH = 110
NAMES = {"de": "German", "es": "Spanish", "fr": "French", "ja": "Japanese", "zh": "Chinese"}
_MADE = re.compile(
    rb'"(POT-Creation-Date|PO-Revision-Date|Generated-By|Language-Team|Last-Translator|Report-Msgid-Bugs-To|'
    rb"Project-Id-Version): [^\n]*\n"
)
"""Headers that are of no use here and would change with every run."""


def extracted() -> Catalog:
    """Every text that stands in the code, with the files it stands in."""
    catalog = Catalog(project="claw-local")
    for source in SOURCES:
        found = extract_from_dir(ROOT / source, [("**.py", "python")], keywords=KEYWORDS, comment_tags=())
        for file, _, text, _, _ in sorted(found, key=lambda one: (one[0], one[1])):
            catalog.add(text, locations=[(f"{source}/{Path(file).as_posix()}", None)])
    return catalog


def languages() -> list[str]:
    """The codes of the languages that are translated into."""
    return list(NAMES)


def po_file(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / f"{NAME}.po"


def read(language: str) -> Catalog:
    """The translations into a language."""
    with po_file(language).open("rb") as file:
        return read_po(file, locale=language, domain=NAME)


class _Bare(Catalog):
    """A catalogue that says neither when nor by what it was made: the same texts give the same file."""

    @property
    def mime_headers(self) -> list[tuple[str, str]]:  # type: ignore[override]
        return [("Content-Type", "text/plain; charset=utf-8"), ("Plural-Forms", self.plural_forms)]


def compiled(catalog: Catalog) -> bytes:
    """The .mo file of a catalogue."""
    bare, out = _Bare(locale=catalog.locale, fuzzy=False), io.BytesIO()
    for message in catalog:
        if message.id:
            bare[message.id] = message
    write_mo(out, bare)
    return out.getvalue()


def texts(message: Message) -> list[str]:
    """The translations of a message, one for each form."""
    return list(message.string) if isinstance(message.string, (tuple, list)) else [message.string]


def fields(text: str) -> set[str]:
    """What a text fills in, with how: {"{number}", "{share:.0%}"}. A leading 0 of a day is each language's own."""
    return {
        "{" + name + (f"!{conversion}" if conversion else "") + (f":{form}" if form and form != "02" else "") + "}"
        for _, name, form, conversion in Formatter().parse(text)
        if name is not None
    }


def problems(language: str, code: Catalog) -> Iterator[str]:
    """What is missing or wrong in a language, in sentences."""
    catalog = read(language)
    known = {message.id for message in catalog if message.id}
    wanted = {message.id for message in code if message.id}
    for one in sorted(map(str, wanted - known)):
        yield f"{language}: there is no translation of {one!r}"
    for one in sorted(map(str, known - wanted)):
        yield f"{language}: the code says no longer {one!r}"
    for message in catalog:
        if not message.id:
            continue
        source = message.id if isinstance(message.id, (tuple, list)) else (message.id,)
        if message.fuzzy:
            yield f"{language}: look at the guess for {source[0]!r}, and take `fuzzy` away"
        for text in texts(message):
            if not text:
                yield f"{language}: {source[0]!r} is not translated"
            elif not any(fields(text) == fields(one) for one in source):
                yield f"{language}: {text!r} fills in {sorted(fields(text))}, not {sorted(fields(source[-1]))}"
            elif any(source[-1].endswith(end) != text.endswith(end) for end in (" ", "\n")):
                yield f"{language}: {text!r} ends with other blanks than {source[-1]!r}"


def update(code: Catalog) -> None:
    """Bring every .po file up to date with the code, and compile it."""
    for language in languages():
        catalog = read(language)
        catalog.update(code, no_fuzzy_matching=True)
        catalog.obsolete.clear()
        out = io.BytesIO()
        write_po(out, catalog, width=WIDTH, omit_header=False, include_lineno=False)
        po_file(language).write_bytes(_MADE.sub(b"", out.getvalue()))
        po_file(language).with_suffix(".mo").write_bytes(compiled(read(language)))


def main() -> int:
    code = extracted()
    if "--check" not in sys.argv[1:]:
        update(code)
    found = [problem for language in languages() for problem in problems(language, code)]
    print("\n".join(found) or "Every language has every text.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
