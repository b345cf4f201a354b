"""`claw-local chat --plain`: the chat line by line, for screen readers and simple terminals.

No full screen, no boxes, no colours, no animation: what is said stands in the order it was said. It must never know how
a reply is made or learned from.
"""

from __future__ import annotations

import queue
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import ClawError, RestoredError, UsageError
from ..language import N_, _, begin, ngettext
from ..paths import locate
from .common import harmless, short
from .feedback import told_taken_back
from .wrapped import Wrap, room

if TYPE_CHECKING:
    from ..assistant import Assistant
    from ..reply import Reply
    from ..settings import Settings
    from ..store import Signal

ASKS, ANSWERS, SAYS = N_("You:"), N_("Answer:"), N_("Note:")
LAST_SHOWN = 2
"""How many messages of a chat are read out when it is opened."""
READ_AS = {
    1: N_("What you said was read as: the answer was good."),
    0: N_("What you said was read as: the answer was neither good nor bad."),
    -1: N_("What you said was read as: the answer was not as you wanted it."),
}
COMMANDS = {
    "help": N_("these commands"),
    "new": N_("begin a new chat"),
    "chats": N_("list the newest chats"),
    "open ID": N_("go on with a chat"),
    "again": N_("ask for another answer to the same question"),
    "good": N_("the last answer was good"),
    "bad": N_("the last answer was not what you wanted"),
    "hint TEXT": N_("how answers should be"),
    "correct TEXT": N_("the last answer as it should have been"),
    "unmark": N_("take back good, bad or correct"),
    "why": N_("what wrote the last answer"),
    "hints": N_("your wishes that hold now"),
    "learn on": N_("from now on, what you say may teach; learn off ends it"),
    "quit": N_("end the chat; Ctrl-D does too"),
}


def run(
    *,
    model: str | None = None,
    settings: Settings | None = None,
    chat_id: int | None = None,
    workspace: str | None = None,
) -> int:
    """Talk until the person ends it. Returns the exit status.

    Args:
        workspace: the folder that the chat's tools may touch.

    Raises:
        ClawError: the assistant could not be opened, there is no such chat, or the folder cannot be a workspace.
    """
    from ..assistant import Assistant

    begin(locate())
    if sys.stdin is None or sys.stdout is None:
        raise UsageError(_("The chat needs an input and an output, and one of them is closed."))
    if sys.stdin.isatty():
        _edit_lines()
    with Assistant.open(model=model, settings=settings) as assistant:
        talk = Talk(assistant, chat_id, workspace)
        talk.greet()
        while talk.turn():
            pass
    return 0


def _edit_lines() -> None:
    """Arrow keys and what was typed before, where the platform has it."""
    try:
        import readline
    except ImportError:
        return
    readline.set_auto_history(True)


class Talk:
    """One conversation on standard input and output."""

    def __init__(self, assistant: Assistant, chat_id: int | None, workspace: str | None = None) -> None:
        self._assistant = assistant
        self._chat_id = assistant.chat(chat_id).id if chat_id is not None else None
        self._workspace = assistant.tools.checked(workspace) if workspace is not None else ""
        if self._workspace and self._chat_id is not None:
            assistant.tools.give(self._chat_id, self._workspace)
        self._last: int | None = None
        self._corrected: dict[int, int] = {}
        """The reply that a text of the person's own corrects."""
        self._heard: queue.SimpleQueue[Signal] = queue.SimpleQueue()
        assistant.on_judged(self._heard.put)

    def greet(self) -> None:
        _say(_("Type a message and press Enter. /help lists the commands, /quit ends the chat."))
        if said := self._assistant.store.database.adrift:
            _say(said)
        if self._chat_id is not None:
            self._read_out(self._chat_id)

    def turn(self) -> bool:
        """One line of the person and what comes of it; whether the chat goes on."""
        self._tell_what_was_read()
        try:
            line = _line()
        except (EOFError, KeyboardInterrupt):
            print()
            return False
        except UnicodeDecodeError:
            _say(_("This is not UTF-8 text. Nothing was sent."))
            return True
        if not line.strip():
            return True
        try:
            if line.startswith("/") and not line.startswith("//"):
                return self._command(line[1:].strip())
            self._ask(line[1:] if line.startswith("//") else line)
        except RestoredError as error:
            _say(str(error))
            self._new("")  # Under its number there may be another chat now.
            self._assistant.accept()
        except ClawError as error:
            _say(str(error))
        return True

    def _ask(self, text: str) -> None:
        if self._chat_id is None and self._workspace:
            from ..talking.text import first_words

            self._chat_id = self._assistant.new_chat(title=first_words(text)).id
            self._assistant.tools.give(self._chat_id, self._workspace)
        if self._in_workspace():
            self._work(text)
        else:
            self._answer(self._assistant.stream(text, chat=self._chat_id))

    def _in_workspace(self) -> bool:
        return self._chat_id is not None and bool(self._assistant.chat(self._chat_id).workspace)

    def _work(self, text: str) -> None:
        """Answer with tools, asking as `claw-local ask` does; the answer comes whole."""
        from .working import Working

        working = Working(self._assistant, frozenset())
        try:
            working.run(text, quiet=False, chat=self._chat_id)
        except KeyboardInterrupt:
            _say(_("Stopped."))
        if working.answer is not None:
            self._last = working.answer.message_id
            said = self._assistant.tools.said(self._assistant.store.messages.get(self._last))
            if said:  # Where it was stopped, the last reply may be nothing but a call.
                _print(f"{_(ANSWERS)} {harmless(said)}")
            for notice in working.answer.notices:
                _say(notice)

    def _answer(self, reply: Reply) -> None:
        """Write an answer out as it comes; Ctrl-C stops it, and keeps what was shown."""
        self._chat_id, self._last = reply.chat_id, reply.message_id
        wrap = Wrap(room(sys.stdout))
        _write(wrap.lead(f"{_(ANSWERS)} "))
        try:
            for piece in reply:
                _write(wrap.feed(harmless(piece)))
        except KeyboardInterrupt:
            reply.close()
            print(wrap.rest())
            _say(_("Stopped."))
            return
        except BaseException:
            reply.close()
            print(wrap.rest())
            raise
        print(wrap.rest())
        for notice in reply.answer.notices:
            _say(notice)

    def _tell_what_was_read(self) -> None:
        """How the judge read the messages since the last line; never in the middle of an answer."""
        while not self._heard.empty():
            signal = self._heard.get()
            if signal.score in READ_AS and (signal.score or signal.hint):
                said = [_(READ_AS[signal.score])]
                if signal.hint:
                    said.append(_("Hint: {hint}", hint=signal.hint))
                _say(" ".join(said))

    # Commands

    def _command(self, line: str) -> bool:
        name, __, words = line.partition(" ")
        if name in ("quit", "exit"):
            return False
        actions: dict[str, Callable[[str], None]] = {
            "help": self._help,
            "new": self._new,
            "chats": self._list_chats,
            "open": self._open,
            "again": self._again,
            "good": lambda __: self._mark("good"),
            "bad": lambda __: self._mark("bad"),
            "hint": self._hint,
            "correct": self._correct,
            "unmark": self._unmark,
            "why": self._why,
            "hints": self._hints,
            "learn": self._learn,
        }
        if name not in actions:
            raise UsageError(
                _("There is no command /{name}. /help lists them; two slashes send a message with one.", name=name)
            )
        actions[name](words.strip())
        return True

    def _help(self, __: str) -> None:
        for name, about in COMMANDS.items():
            _print(f"/{name}: {_(about)}.")
        _print(_("A line that ends with a backslash goes on in the next one. Two slashes send a message with one."))

    def _new(self, __: str) -> None:
        self._chat_id = self._last = None
        self._workspace = ""
        _say(_("A new chat."))

    def _list_chats(self, __: str) -> None:
        chats = self._assistant.chats(limit=20)
        for chat in chats:
            title = chat.title or _("untitled")
            _print(f"{chat.id}: {short(title)}")
        if not chats:
            _say(_("There are no chats yet."))

    def _open(self, words: str) -> None:
        if not words.isdecimal() or len(words) > 18:
            raise UsageError(_("Say which chat: /open 3. /chats lists them."))
        self._chat_id = self._assistant.chat(int(words)).id
        self._read_out(self._chat_id)

    def _read_out(self, chat_id: int) -> None:
        messages = [message for message in self._assistant.messages(chat_id) if message.role in ("user", "assistant")]
        self._last = next((message.id for message in reversed(messages) if message.role == "assistant"), None)
        title = self._assistant.chat(chat_id).title or _("untitled")
        _say(
            ngettext(
                "Chat {id}, {title}, {number} message. The newest:",
                "Chat {id}, {title}, {number} messages. The newest:",
                len(messages),
                id=chat_id,
                title=harmless(title),
            )
        )
        for message in messages[-LAST_SHOWN:]:
            who = ASKS if message.role == "user" else ANSWERS
            _print(f"{_(who)} {harmless(self._assistant.tools.said(message))}")

    def _again(self, __: str) -> None:
        if self._in_workspace():
            raise UsageError(_("In a chat with a workspace, ask again in words: what its tools did is not done twice."))
        self._answer(self._assistant.regenerate(self._reply_meant()))

    def _mark(self, verdict: str) -> None:
        self._assistant.feedback(self._reply_meant(), "good" if verdict == "good" else "bad")
        _say(_("Noted: the last answer was good.") if verdict == "good" else _("Noted: the last answer was bad."))

    def _hint(self, text: str) -> None:
        if not text:
            raise UsageError(_("Say how answers should be: /hint Answer in plain sentences."))
        hint = self._assistant.hints.add(text)
        _say(_("Hint {id} holds from the next answer on. To take it out: claw-local hints off {id}", id=hint.id))

    def _correct(self, text: str) -> None:
        if not text:
            raise UsageError(_("Say the answer as it should have been: /correct Rain is water that falls from clouds."))
        corrected = self._reply_meant()
        self._assistant.feedback(corrected, edit=text)
        _say(_("Your text stands in the place of the last answer."))
        if self._chat_id is not None:
            self._last = self._assistant.messages(self._chat_id)[-1].id
            self._corrected = {self._last: corrected}

    def _unmark(self, __: str) -> None:
        meant = self._reply_meant()
        for line in told_taken_back(self._assistant.take_back(self._corrected.get(meant, meant))):
            _say(line)

    def _why(self, __: str) -> None:
        why = self._assistant.why(self._reply_meant())
        if why.by != "model":
            _say(_("You wrote it yourself.") if why.by == "person" else _("It was written elsewhere, and imported."))
            return
        adapter = _("adapter {id}", id=why.adapter.id) if why.adapter is not None else _("no adapter")
        seconds = why.timings.get("total", 0.0)
        _say(_("{model}, {adapter}, {seconds:.1f} seconds.", model=why.model, adapter=adapter, seconds=seconds))
        for hint in why.hints:
            _print(_("Told to it: {hint}", hint=harmless(hint.text)))
        if why.hints_removed:
            _print(
                ngettext(
                    "Told to it, and removed since: {number} hint.",
                    "Told to it, and removed since: {number} hints.",
                    why.hints_removed,
                )
            )

    def _hints(self, __: str) -> None:
        hints = self._assistant.hints.list()
        for hint in hints:
            _print(f"{hint.id}: {harmless(hint.text)}")
        if not hints:
            _say(_("There are no hints."))

    def _learn(self, words: str) -> None:
        if words not in ("on", "off"):
            raise UsageError(
                _("Learning is on. Say /learn on or /learn off.")
                if self._assistant.learn.enabled
                else _("Learning is off. Say /learn on or /learn off.")
            )
        if words == "on":
            self._assistant.learn.on()
        else:
            self._assistant.learn.off()
        _say(_("Learning is on.") if words == "on" else _("Learning is off."))

    def _reply_meant(self) -> int:
        if self._last is None:
            raise UsageError(_("There is no answer yet. Ask something first."))
        return self._last


def _line() -> str:
    """What the person typed; a backslash at the end of a line joins the next one to it."""
    lines = [input(f"{_(ASKS)} ")]
    while lines[-1].endswith("\\"):
        lines[-1] = lines[-1][:-1]
        lines.append(input())
    return "\n".join(lines)


def _say(text: str) -> None:
    _print(f"{_(SAYS)} {harmless(text)}")


def _print(text: str) -> None:
    wrap = Wrap(room(sys.stdout))
    print(wrap.feed(text) + wrap.rest(), flush=True)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
