"""Messages one can walk among: which of them is meant, and the next one. It must never know how they come here."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll

from .bubbles import Bubble, Question
from .tool_use import ToolUse


class Walked(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Scrolls to whichever message gets the focus."""

    # Up and Down are the screen's: they go from message to message.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "page_up", "Scroll up", show=False),
        Binding("pagedown", "page_down", "Scroll down", show=False),
        Binding("home", "scroll_home", "Beginning", show=False),
        Binding("end", "scroll_end", "End", show=False),
    ]

    if TYPE_CHECKING:

        @property
        def _list(self) -> Vertical: ...
        def _messages(self) -> list[Question | Bubble | ToolUse]: ...

    def replies(self) -> list[Bubble]:
        """The replies on the screen, oldest first."""
        return list(self.query(Bubble))

    def chosen(self) -> Bubble | None:
        """The reply meant by a thumb: the one in focus or to the question in focus, else the last that is stored."""
        stored = [bubble for bubble in self.replies() if bubble.message_id]
        focused = self.screen.focused
        if isinstance(focused, Bubble) and focused.message_id:
            return focused
        if isinstance(focused, Question) and focused in self._list.children:
            behind = self._list.children[self._list.children.index(focused) + 1 :]
            return next((one for one in behind if one in stored and isinstance(one, Bubble)), None)
        return stored[-1] if stored else None

    def chosen_question(self) -> Question | None:
        """The question that has the focus."""
        focused = self.screen.focused
        return focused if isinstance(focused, Question) else None

    def question_of_chosen(self) -> str:
        """What the chosen reply answers, or the question in focus; empty if there is none."""
        focused = self.chosen_question()
        if focused is not None:
            return focused.raw
        chosen, question = self.chosen(), ""
        for widget in self._messages():
            if widget is chosen:
                break
            question = widget.raw if isinstance(widget, Question) else question
        return question

    def step(self, by: int) -> None:
        """Move the focus from message to message, a page at a time within one that is taller than the screen; from
        elsewhere to the last reply."""
        drawn, focused = [widget for widget in self._messages() if widget.display], self.screen.focused
        if not drawn:
            return
        if isinstance(focused, (Question, Bubble, ToolUse)) and focused in drawn:
            whole = focused.region
            if by < 0 and whole.y < self.region.y:
                self.scroll_relative(y=-min(self.size.height - 1, self.region.y - whole.y))
                return
            if by > 0 and whole.bottom > self.region.bottom:
                self.scroll_relative(y=min(self.size.height - 1, whole.bottom - self.region.bottom))
                return
            drawn[max(0, min(drawn.index(focused) + by, len(drawn) - 1))].focus()
        else:
            ([reply for reply in self.replies() if reply.display] or drawn)[-1].focus()
