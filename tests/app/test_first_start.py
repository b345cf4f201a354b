"""The first start: four lines, which model answers, what learning keeps; once, skippable, and never in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.widgets import OptionList, Static

from claw_app.app import ClawApp
from claw_app.commands import COMMANDS, key_names
from claw_app.screens.help import Help, page
from claw_app.widgets.welcome import Welcome
from claw_local import language
from claw_local.engine.recommended import Recommended
from claw_local.errors import ModelError
from claw_local.language import _
from claw_local.paths import Paths
from tests.app import drawing

Until = Callable[..., Any]


class FoundHere:
    """Stands for `assistant.models` where a test needs models that this machine has not: what is found, used, fetched.

    The real one is asked in `test_the_models_of_this_machine_are_offered`.
    """

    def __init__(self) -> None:
        self.used: list[str] = []
        self.error: Exception | None = None
        self.fetched = 0

    def list(self) -> list[Any]:
        def model(name: str, source: str, *, in_use: bool) -> Any:
            return SimpleNamespace(
                name=name,
                source=source,
                path=Path(f"{name}.gguf"),
                size_bytes=2_500_000_000,
                quantisation="Q4_K_M",
                in_use=in_use,
                chooses=f"/models/{name}.gguf",
            )

        return [model("Tiny", "embedded", in_use=True), model("Qwen", "lm-studio", in_use=False)]

    def recommend(self) -> list[Recommended]:
        return [Recommended("Big", "org/big", "big.gguf", 5_000_000_000, "Apache-2.0", True, "Good at everything.")]

    def use(self, name: str) -> Any:
        if self.error is not None:
            raise self.error
        self.used.append(name)
        return None

    def find(self, name: str) -> Any:
        return SimpleNamespace(name="Big", source="models", chooses=name)

    def pull(self, repo: str, file: str, *, on_progress: Any, cancel: Any) -> Any:
        on_progress(SimpleNamespace(phase="fetching", file=file, done_bytes=1, total_bytes=4))
        self.fetched += 1
        return SimpleNamespace(path=Path("big.gguf"))


@pytest.fixture
def models(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> FoundHere:
    found = FoundHere()
    monkeypatch.setattr(type(scripted), "models", property(lambda _: found))
    return found


def steps(app: ClawApp) -> str:
    """The text of the first steps."""
    texts = [str(place.render()) for place in app.main.query("#first-steps Static").results(Static)]
    lists = [
        str(option.prompt)
        for listed in app.main.query("#welcome-models").results(OptionList)
        for option in listed.options
    ]
    return "\n".join([*texts, *lists])


async def test_the_first_steps_name_models_and_what_learning_keeps(
    app: ClawApp, models: FoundHere, until: Until, scripted: Any
) -> None:
    async with app.run_test(size=(100, 36)) as pilot:
        await until(pilot, lambda: "Tiny" in steps(app))
        text = steps(app)
        assert "● Tiny  Q4_K_M · 2.5 GB · comes with claw-local" in text
        assert "○ Qwen  Q4_K_M · 2.5 GB · of LM Studio" in text
        assert "↓ Big  5.0 GB to fetch · Good at everything." in text
        assert "Learning is off" in text and str(scripted.paths.data) in text
        assert "takes its lessons with it" in text
        assert "Tab goes to the list" in text


async def test_the_models_of_this_machine_are_offered(app: ClawApp, until: Until, model_path: Path) -> None:
    async with app.run_test(size=(100, 36)) as pilot:
        await until(pilot, lambda: "comes with claw-local" in steps(app))
        assert "SmolLM2" in steps(app)


async def test_typing_goes_on_and_the_first_message_takes_the_steps_away(
    app: ClawApp, models: FoundHere, scripted: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: "Tiny" in steps(app))
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked[0] == "hello"
        assert not app.main.query("#first-steps")


async def test_letters_typed_on_the_list_of_models_begin_a_message(
    app: ClawApp, models: FoundHere, until: Until
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Tiny" in steps(app))
        await pilot.press("tab")
        assert app.focused is app.main.query_one("#welcome-models")
        await pilot.press(*"hello")
        assert app.main.composer.text == "hello" and app.main.composer.has_focus
        assert app.screen is app.main and not app._notifications
        app.main.composer.text = ""
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert app.main.query_one(Welcome).has_steps, "Enter on an empty field does nothing"


@pytest.fixture
def english() -> Iterator[None]:
    """Whatever a test speaks, the next one begins in English."""
    yield
    language.use("en")


@pytest.mark.usefixtures("english")
@pytest.mark.parametrize("spoken", language.LANGUAGES)
async def test_all_of_it_is_in_sight_at_80_columns(
    app: ClawApp, scripted: Any, models: FoundHere, until: Until, spoken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    language.use(spoken)
    scripted.paths = Paths(data=Path("/home/me/.local/share/claw-local"), config=Path("/home/me/.config/claw-local"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Tiny" in steps(app))
        await pilot.pause()
        assert app.main.transcript.max_scroll_y == 0
        seen, last = drawing.text(app), _("Just type to begin. F1 shows all keys, Esc hides this.")
        assert last in seen and "~/.local/share/claw-local" in seen
        assert spoken != "en" or "takes its lessons with it" in seen


async def test_esc_hides_them_for_good_and_a_command_shows_them_again(
    app: ClawApp, models: FoundHere, scripted: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: "Tiny" in steps(app))
        await pilot.press("escape")
        await until(pilot, lambda: not app.main.query("#first-steps"))
        assert "claw-local" in app.main.query_one(Welcome).text
        assert app.focused is app.main.composer
        await until(pilot, lambda: scripted.noted("first-steps-seen"))
        await pilot.press("ctrl+n")
        await pilot.pause(0.2)
        assert not app.main.query("#first-steps")
        await pilot.press(*"/start", "enter")
        await until(pilot, lambda: "Tiny" in steps(app))


async def test_who_has_seen_them_does_not_see_them_again(
    app: ClawApp, models: FoundHere, scripted: Any, until: Until
) -> None:
    scripted.note("first-steps-seen", "yes")
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.query(Welcome) and app.main.query_one(Welcome).text)
        await pilot.pause(0.3)
        assert not app.main.query("#first-steps")


async def test_a_model_that_is_here_is_put_into_use(app: ClawApp, models: FoundHere, until: Until) -> None:
    async with app.run_test(size=(100, 36)) as pilot:
        await until(pilot, lambda: "Tiny" in steps(app))
        app.main.query_one("#welcome-models").focus()
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: models.used == ["/models/Qwen.gguf"])
        await until(pilot, lambda: "answers from now on" in steps(app))
        assert app.focused is app.main.composer


async def test_a_model_that_does_not_work_is_said_and_the_old_one_stays(
    app: ClawApp, models: FoundHere, until: Until
) -> None:
    models.error = ModelError("This file is cut short. Fetch it again.")
    async with app.run_test(size=(100, 36)) as pilot:
        await until(pilot, lambda: "Tiny" in steps(app))
        app.main.query_one("#welcome-models").focus()
        await pilot.press("down", "enter")
        await until(pilot, lambda: "cut short" in steps(app))


async def test_nothing_is_fetched_before_a_question_is_answered(app: ClawApp, models: FoundHere, until: Until) -> None:
    async with app.run_test(size=(100, 36)) as pilot:
        await until(pilot, lambda: "Big" in steps(app))
        app.main.query_one("#welcome-models").focus()
        await pilot.press("end", "enter")
        await until(pilot, lambda: type(app.screen).__name__ == "Confirm")
        await pilot.press("escape")
        await pilot.pause(0.1)
        assert models.fetched == 0
        await pilot.press("enter")
        await until(pilot, lambda: type(app.screen).__name__ == "Confirm")
        await pilot.press("y")
        await until(pilot, lambda: models.used == ["big.gguf"])
        assert models.fetched == 1


async def test_the_help_lists_every_key_and_mark_and_searches(app: ClawApp, until: Until) -> None:
    everything = page("", 200).plain
    for command in COMMANDS:
        assert command.help in everything
        assert f"/{command.slash} " in everything
        assert key_names(command) in everything
    assert all(mark in everything for mark in ("▲", "▼", "·"))
    assert "Delete this chat" in page("delete chat", 200).plain
    assert "Rename" not in page("delete chat", 200).plain
    assert "Nothing of that kind" in page("qqq", 200).plain
    assert max(map(len, page("", 72).plain.splitlines())) <= 72
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, Help))
        await pilot.press(*"tmux")
        await pilot.pause()
        shown = app.screen.query_one("#help-page", Static)
        assert "press it twice" in str(shown.render()) and "Attach" not in str(shown.render())
        await pilot.press("escape")
        assert app.focused is app.main.composer


async def test_models_that_are_found_while_the_steps_are_taken_down_are_no_harm(
    app: ClawApp, models: FoundHere, until: Until
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.query("#welcome-models"))
        welcome = app.main.query_one(Welcome)
        await welcome.query_one("#welcome-models").remove()
        assert welcome.has_steps
        welcome.show_models(models.list(), [])
        assert app.is_running
