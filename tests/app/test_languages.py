"""Every screen in every language: what has room in English has room in the others too."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.cells import cell_len
from textual.screen import Screen
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList, Static, Tooltip
from textual.widgets._footer import FooterKey

from claw_app.app import ClawApp
from claw_app.report import sentences
from claw_app.screens.approve import Approve
from claw_app.screens.ask import AskLine, Confirm
from claw_app.screens.chat_settings import ChatSettings, Choices
from claw_app.screens.compare import CompareScreen
from claw_app.screens.export import Export
from claw_app.screens.help import Help
from claw_app.screens.learning_view import LearningView
from claw_app.screens.report import Report
from claw_app.screens.search import Search
from claw_app.screens.why import WhyScreen
from claw_app.text import day_name, moment
from claw_app.widgets.bubbles import clickable
from claw_app.words import SENDS
from claw_local import language
from claw_local.language import _
from claw_local.tools.base import Call
from tests.app import drawing
from tests.app.driving import Until, foot, say
from tests.app.test_first_start import FoundHere
from tests.app.test_learning_view import GATE

OTHERS = [code for code in language.LANGUAGES if code != "en"]
SMALL = (80, 24)
RUN_IS_ON = "A training run is on. If you quit now, it is left, and the next one goes on with it."
EXAMPLE = "for example: at most two sentences, no lists"
WHICH_FOLDER = "Which folder may this chat's tools touch?"


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Whatever a test speaks, the next one begins in English."""
    yield
    language.use("en")


def cut(screen: Screen[Any]) -> dict[str, str]:
    """What is cut on a screen: where it stands -> the words. Text that breaks into lines has room as long as all its
    lines are seen."""
    found: dict[str, str] = {}

    def note(widget: Widget, what: str, words: str) -> None:
        place = "/".join(str(part.css_identifier) for part in widget.ancestors_with_self[:2])
        number = sum(one.startswith(f"{place} {what}") for one in found)
        found[f"{place} {what} {number}"] = words

    for widget in screen.walk_children(Widget):
        if not widget.display or not widget.region.area or isinstance(widget, Tooltip):
            continue
        width = widget.content_size.width
        for what in ("border_title", "border_subtitle"):
            words = getattr(widget, what, None)
            if words and widget.styles.border and cell_len(str(words)) > widget.size.width - 2:
                note(widget, what, str(words))
        if isinstance(widget, Input):
            if not widget.value and cell_len(str(widget.placeholder)) > width:
                note(widget, "placeholder", str(widget.placeholder))
        elif isinstance(widget, FooterKey):
            assert widget.parent is not None
            if widget.region.right > widget.parent.region.right:  # type: ignore[attr-defined]
                note(widget, "key", str(widget.description))
        elif isinstance(widget, Button):
            seen = screen.find_widget(widget).visible_region
            if cell_len(str(widget.label)) > width or seen.width < widget.region.width:
                note(widget, "label", str(widget.label))
        elif isinstance(widget, OptionList):
            for option in widget._options:
                if cell_len(str(option.prompt).splitlines()[0] if str(option.prompt) else "") > width:
                    note(widget, "option", str(option.prompt))
        elif type(widget).__module__.startswith(("claw_app.widgets.markdown", "textual.widgets._text_area")):
            continue
        elif isinstance(widget, Static):
            words = str(widget.render())
            if widget.styles.text_wrap == "nowrap" and cell_len(words) > width:
                note(widget, "line", words)
            height = widget.get_content_height(widget.size, screen.size, width)
            if height > widget.content_size.height or any(cell_len(word) > width for word in _words(words)):
                note(widget, "text", words)
    return found


def _words(text: str) -> list[str]:
    """What no line can break within: Chinese and Japanese break anywhere."""
    return re.findall(r"[^\s\u3000-\u9fff\uff00-\uffef]+", text)


async def _still(pilot: Any) -> None:
    """What was begun is on the screen, also where the machine is busy: it has been laid out, and does not move."""
    before = ""
    for __ in range(200):
        await pilot.pause(0.02)
        screen = pilot.app.screen
        laid_out = any(child.size.area for child in screen.children)
        now = f"{id(screen)} {len(screen.query('*'))} {drawing.text(pilot.app)}" if laid_out else ""
        if now and now == before:
            return
        before = now
    raise AssertionError("the screen never comes to rest")


@asynccontextmanager
async def opened(assistant: Any, until: Until, chat_id: int | None = None) -> AsyncIterator[tuple[ClawApp, Any]]:
    app = ClawApp(lambda: assistant, chat_id=chat_id)
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, lambda: app.main._ready.is_set() and app.main.status.state and app.main.status.model)
        yield app, pilot


async def tour(assistant: Any, until: Until, chat_id: int) -> dict[str, dict[str, str]]:
    """What is cut on each screen, in the language in use."""
    seen: dict[str, dict[str, str]] = {}
    async with opened(assistant, until) as (app, pilot):
        await until(pilot, lambda: app.main.query("#welcome-models") and app.main.query_one("#welcome-models").display)
        await _still(pilot)
        seen["first start"] = cut(app.screen)
        await app.main.open_chat(chat_id)
        await until(pilot, app.main.transcript.replies)
        await _still(pilot)
        seen["chat"] = cut(app.screen)
        app.main.transcript.step(1)
        await _still(pilot)
        seen["a reply in focus"] = cut(app.screen)
        await pilot.press("e")
        await _still(pilot)
        seen["a reply being corrected"] = cut(app.screen)
        await pilot.press("escape")
        app.main.sidebar.display = True
        await _still(pilot)
        seen["the list of chats"] = cut(app.screen)
        app.main.sidebar.display = False
        reply = app.main.transcript.replies()[-1]
        change = SimpleNamespace(title="write shopping.md", preview="+ bread", call=Call("write", {}))
        why = assistant.why(reply.message_id)
        over: dict[str, Callable[[], Screen[Any]]] = {
            "why": lambda: WhyScreen(assistant, why),
            "help": Help,
            "settings": lambda: ChatSettings(assistant, Choices()),
            "settings, incognito": lambda: ChatSettings(assistant, Choices(), incognito=True),
            "search": lambda: Search(assistant),
            "export": lambda: Export(assistant, chat_id, "Eggs"),
            "a question": lambda: Confirm(_(RUN_IS_ON), _("Quit"), _("Stay")),
            "fetching": lambda: Confirm("Fetch?", _("Fetch"), _("Not now")),
            "a hint": lambda: AskLine(_("What should this reply have been like?"), "", _(EXAMPLE)),
            "a wish": lambda: AskLine(_("What do you wish for, in every chat?"), "", _(EXAMPLE)),
            "a workspace": lambda: AskLine(_(WHICH_FOLDER), "", _("a folder; none takes it away")),
            "a tool asks": lambda: Approve(change),  # type: ignore[arg-type]
            "a report": lambda: Report(_("Adapter {id}", id=1), "", GATE),
            "comparing": lambda: CompareScreen(assistant, assistant.adapters.list(), "", None),
        }
        for name, make in over.items():
            await app.push_screen(make())
            await _still(pilot)
            seen[name] = cut(app.screen)
            await app.pop_screen()
        await app.push_screen(LearningView(assistant))
        await _still(pilot)
        for panel in ("score", "hints", "runs", "adapters"):
            app.screen.action_panel(panel)  # type: ignore[attr-defined]
            await _still(pilot)
            seen[f"what it learned: {panel}"] = cut(app.screen)
        await app.pop_screen()
        await app.main._go_incognito()
        await _still(pilot)
        seen["incognito"] = cut(app.screen)
    return seen


@pytest.fixture
def used(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An assistant that has an adapter, a run and hints."""
    monkeypatch.setattr(type(scripted), "models", property(lambda __: FoundHere()))
    monkeypatch.setattr("claw_app.screens.export.documents", lambda: Path("/home/me"))
    scripted.learn.on()
    store = scripted.store
    adapter = store.adapters.add(parent_id=0, model_sha256="0" * 64, architecture="llama", lineage=[1, 2, 3])
    result = {"adapter": adapter.id, "accepted": True, "samples": 12, "steps": 8, "seconds": 61.0, "gate": GATE}
    store.runs.finish(store.runs.begin(), "done", result=result, adapter_id=adapter.id)
    return scripted


async def test_nothing_is_cut_that_has_room_in_english(used: Any, until: Until) -> None:
    chat_id = used.ask("How do I boil an egg?").chat_id
    used.history.delete(chat_id)  # The first start has no chat yet.
    seen: dict[str, dict[str, dict[str, str]]] = {}
    for code in language.LANGUAGES:
        language.use(code)
        used.history.delete(chat_id) if seen else None
        seen[code] = await tour(used, until, chat_id)
    wrong = [
        f"{code}, {name}: {words!r} ({place})"
        for code in OTHERS
        for name, found in seen[code].items()
        for place, words in found.items()
        if place not in seen["en"][name]
    ]
    assert not wrong, "\n".join(wrong)
    assert "Help" not in "".join(seen["en"]["chat"].values()), "the footer shows its keys as far as F1"


async def test_what_is_cut_is_seen(scripted: Any, until: Until) -> None:
    """The test above would notice."""
    async with opened(scripted, until) as (app, pilot):
        await app.push_screen(AskLine("Why?", "", "for example " * 20))
        await _still(pilot)
        assert [words for words in cut(app.screen).values() if words.startswith("for example")]
        await app.pop_screen()
        await app.push_screen(Confirm("Really?", "Yes, of course, " * 6, "No"))
        await _still(pilot)
        assert [words for words in cut(app.screen).values() if words.startswith("Yes")]


@pytest.mark.parametrize(("code", "words"), [("de", "Neu"), ("zh", "新建"), ("ja", "新規")])
async def test_the_footer_and_the_palette_speak_it(scripted: Any, until: Until, code: str, words: str) -> None:
    language.use(code)
    async with opened(scripted, until) as (app, pilot):
        await _still(pilot)
        assert words in [str(key.description) for key in app.main.query(FooterKey)]
        assert app.main.composer.border_subtitle == _(SENDS) != SENDS
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert _("New chat") in titles and _("Choose theme") in titles and "Choose theme" not in titles


async def test_a_reply_and_its_marks_in_german(scripted: Any, until: Until) -> None:
    language.use("de")
    async with opened(scripted, until) as (app, pilot):
        reply = await say(pilot, app, "Wie koche ich ein Ei?", until)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: reply.score == 1)
        app.main.transcript.step(1)
        await _still(pilot)
        assert "gut, von dir markiert" in foot(reply) and "Basismodell" in foot(reply)


def test_times_and_reports_are_written_as_the_language_does() -> None:
    from datetime import date

    today = date(2026, 3, 10)
    written = {}
    for code in language.LANGUAGES:
        language.use(code)
        written[code] = (
            day_name("2026-01-21T12:00:00Z", today),
            day_name("2026-03-06T12:00:00Z", today),
            moment("2026-03-06T12:00:00")[:-6],
        )
    assert written["en"] == ("21 January", "Friday", "06 Mar")
    assert written["de"] == ("21. Januar", "Freitag", "06. März")
    assert written["es"][0] == "21 de enero"
    assert written["ja"] == ("1月21日", "金曜日", "3月6日")
    language.use("fr")
    said = "\n".join(line.plain for line in sentences(GATE))
    assert "Respecter vos souhaits de lui-même: mieux" in said and "48 mots en moyenne ; 112 avant" in said


@pytest.mark.parametrize("code", language.LANGUAGES)
def test_the_words_below_a_message_begin_with_their_letters_in_every_language(code: str) -> None:
    language.use(code)
    for words, actions in (
        (
            "+ good  - bad  h hint  e correct  y copy  r again  c compare  w why",
            ["good", "bad", "hint", "edit", "copy", "regenerate", "compare", "why"],
        ),
        ("e say it otherwise  y copy", ["edit", "copy"]),
    ):
        spans = [span for span in clickable(_(words)).spans if isinstance(span.style, Style)]
        assert [span.style.meta["@click"] for span in spans] == [f"screen.{action}" for action in actions]
