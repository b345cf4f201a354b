"""Working in a folder: what a reply calls is prepared, allowed by the person, carried out and kept; then it goes on.

It must never decide for the person: whether a call may be made is asked of whoever shows the chat.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..engine.tool_forms import ToolSpec
from ..errors import NothingError, UsageError
from ..judge import tools as outcomes
from ..language import _
from ..store import Chat, Store, StoredMessage, ToolCall
from ..store.records import ToolState
from ..tools.base import Call, Prepared, Result, ToolError, Undo
from .text import clean

if TYPE_CHECKING:
    import os

    from ..reply import Reply
    from ..tools.toolbox import Toolbox
    from .asking import Asking

Decision = Literal["once", "always", "option", "no", "stop", "unasked"]
"""What the person says to a call. "stop" is "no", and the assistant does not go on by itself. "unasked": they could not
be asked, so nothing is done, and nothing is known of what they think of it."""
MOST_OPEN = 4
ENOUGH = "[No more tools can be used for this message. Answer the person now.]"


@dataclass(frozen=True)
class Used:
    """A call that was answered. `message_id`: the tool's message; `text`: what it returned."""

    message_id: int
    text: str
    record: ToolCall


Approve = Callable[[Prepared], tuple[Decision, str]]
"""Asks the person about a call; returns what they decided, and why, if they said so."""


class Tools:
    """What the assistant may do in chats that have a workspace. Use it from any thread.

    `work` is the whole loop; who shows a chat step by step takes `calls`, `prepare`, `use` and `go_on`.
    """

    def __init__(self, assistant: Asking) -> None:
        self._assistant = assistant
        self._boxes: dict[str, Toolbox] = {}
        self._lock = threading.Lock()

    # Which folder

    def give(self, chat_id: int, folder: str | os.PathLike[str]) -> Chat:
        """Let a chat's tools work in this folder from now on. What was allowed in another one is not in this.

        Raises:
            NotFoundError: no such chat. UsageError: no such folder, or one that cannot be a workspace.
        """
        root = self.checked(folder)
        chat = self._assistant.chat(chat_id)
        if chat.workspace == root:
            return chat
        return self._assistant.store.chats.update(chat_id, workspace=root, always=[])

    def checked(self, folder: str | os.PathLike[str]) -> str:
        """A folder's whole path, if it can be a workspace. Raises UsageError."""
        from ..tools.toolbox import workspace_of

        return str(workspace_of(folder, self._assistant.paths))

    def take(self, chat_id: int) -> Chat:
        """Take a chat's workspace away, and with it its tools. Raises NotFoundError."""
        chat = self._assistant.chat(chat_id)
        if not chat.workspace and not chat.always:
            return chat
        return self._assistant.store.chats.update(chat_id, workspace="", always=[])

    def told(self, chat: Chat) -> tuple[tuple[ToolSpec, ...], list[str]]:
        """The tools a reply in this chat is told of, and sentences about those that cannot be used."""
        if not chat.workspace:
            return (), []
        try:
            box = self._box(chat)
            return box.specs, box.problems
        except ToolError as error:
            return (), [str(error)]

    def _box(self, chat: Chat) -> Toolbox:
        """Raises ToolError: the folder is gone."""
        from pathlib import Path

        from ..tools.toolbox import Toolbox

        with self._lock:
            box = self._boxes.pop(chat.workspace, None)
            if box is None:
                box = Toolbox(Path(chat.workspace), self._assistant.paths, self._assistant.settings.tools)
                for old in list(self._boxes)[: max(0, len(self._boxes) + 1 - MOST_OPEN)]:
                    self._boxes.pop(old).close()
            self._boxes[chat.workspace] = box
            return box

    def close(self) -> None:
        """End the MCP servers that were started."""
        with self._lock:
            for box in self._boxes.values():
                box.close()
            self._boxes.clear()

    # One call

    def calls(self, reply_id: int) -> list[Call]:
        """What a finished reply calls; nothing if it was told of no tools, or was stopped."""
        message = self._assistant.store.messages.get(reply_id)
        if message.state != "done" or not self._assistant.chat(message.chat_id).workspace:
            return []
        return self._read(message)[1]

    def said(self, message: StoredMessage) -> str:
        """What a message says, without the calls in it."""
        return self._read(message)[0]

    def _read(self, message: StoredMessage) -> tuple[str, list[Call]]:
        from ..tools.calls import calls_in

        listed = self._assistant.store.tool_calls.toolset(message.toolset_id) if message.toolset_id else ""
        if message.role != "assistant" or not listed:
            return message.content, []
        return calls_in(message.content, {told[0] for told in json.loads(listed)})

    def prepare(self, chat_id: int, call: Call) -> Prepared:
        """What a call would do now. Raises UsageError: the chat has no workspace."""
        chat = self._assistant.chat(chat_id)
        if not chat.workspace:
            raise UsageError(_("This chat has no workspace any more, so its tools cannot be used."))
        try:
            return self._box(chat).prepare(call)
        except ToolError as error:
            text = f"error: {error}"
            return Prepared(call, call.name, "", False, "", lambda _: Result(text, -1), chat.workspace)

    def asks(self, chat_id: int, prepared: Prepared) -> bool:
        """Whether the person has to be asked about it in this chat."""
        return prepared.asks and prepared.key not in self._assistant.chat(chat_id).always

    def use(
        self,
        reply_id: int,
        prepared: Prepared,
        decision: Decision | None,
        why: str = "",
        *,
        after: int | None = None,
        stop: threading.Event | None = None,
    ) -> Used:
        """Carry a call out, or note that the person declined it, and keep what came of it.

        Args:
            decision: None where nobody had to be asked; "option": an option of a command allowed it before.
            after: the result of the reply's call before this one.

        Raises:
            UsageError: the person has to be asked, and was not.
        """
        store = self._assistant.store
        reply = store.messages.get(reply_id)
        chat = self._assistant.chat(reply.chat_id)
        if not chat.workspace or chat.workspace != prepared.root:
            raise UsageError(_("The chat's workspace was changed meanwhile, so nothing was done."))
        if decision is None and self.asks(reply.chat_id, prepared):
            raise UsageError(_("The person has to be asked first: {title}.", title=prepared.title))
        declined = decision in ("no", "stop", "unasked")
        if decision == "unasked":
            result = Result("The person could not be asked about this call. Nothing was done.", 0)
        elif declined:
            said = f" They said: {clean(why).strip()}" if why.strip() else ""
            result = Result(f"The person declined this call. Nothing was done.{said}", -1)
        else:
            result = self._perform(prepared, stop)
        # What a tool returned is evaluative, and never a hint.
        score = outcomes.outcome(result.text) if result.score is None else result.score
        text = clean(result.text)
        if self._steps(reply_id) >= self._assistant.settings.tools.steps:
            text = f"{text}\n{ENOUGH}"
        undo = result.undo
        with store.database.write():
            chat = self._assistant.chat(reply.chat_id)
            if decision == "always" and prepared.key not in chat.always:
                store.chats.update(chat.id, always=[*chat.always, prepared.key])
            teaching = store.messages.teaching_of(reply_id)
            message_id = store.messages.add(chat.id, "tool", text, parent_id=after or reply_id, learn=teaching)
            record = store.tool_calls.add(
                chat_id=chat.id,
                reply_id=reply_id,
                result_id=message_id,
                name=clean(prepared.call.name),
                arguments=prepared.call.arguments,
                title=clean(prepared.title),
                decision="no" if declined else decision or ("always" if prepared.asks else "free"),  # type: ignore[arg-type]
                state=_state(declined, result, score),
                score=score,
                path=undo.path if undo else "",
                before=undo.before if undo else None,
                after_sha256=undo.after_sha256 if undo else "",
                workspace=chat.workspace,
            )
            if teaching == "yes":
                _note_outcome(store, reply_id, score, first=after is None)
        return Used(message_id, text, record)

    def _perform(self, prepared: Prepared, stop: threading.Event | None) -> Result:
        from ..tools.toolbox import performed

        return performed(prepared, self._assistant.settings.tools, stop)

    def _steps(self, reply_id: int) -> int:
        """How many replies there are since the person's last message, this one included."""
        steps = 0
        for message in reversed(self._assistant.store.messages.branch(reply_id)):
            if message.role == "user":
                break
            steps += message.role == "assistant"
        return steps

    def go_on(self, result_id: int, **options: Any) -> Reply:
        """The next reply, after what the tools returned. Options as for `regenerate`.

        Raises:
            UsageError: the message is not what a tool returned. NotFoundError: no such message.
        """
        assistant = self._assistant
        result = assistant.store.messages.get(result_id)
        if result.role != "tool":
            raise UsageError(
                _(
                    "Message {result_id} is not what a tool returned, so there is nothing to go on from.",
                    result_id=result_id,
                )
            )
        return assistant._go_on(result, with_tools=self._steps(result_id) < assistant.settings.tools.steps, **options)

    # The whole loop

    def work(
        self, text: str, approve: Approve, *, stop: threading.Event | None = None, **options: Any
    ) -> Iterator[Reply | Used]:
        """Ask, and go on until a reply calls nothing: gives out each Reply before it is read, and each call's result.

        Args:
            approve: asks the person about a call that needs it; from the thread that iterates.
            options: as for `stream`.
        """
        reply = self._assistant.stream(text, **options)
        again = {name: options[name] for name in ("model", "sampling", "adapter", "memory") if name in options}
        while True:
            yield reply
            answer = reply.answer
            result_id, goes_on = None, True
            for call in self.calls(answer.message_id):
                prepared = self.prepare(answer.chat_id, call)
                decision, why = approve(prepared) if self.asks(answer.chat_id, prepared) else (None, "")
                used = self.use(answer.message_id, prepared, decision, why, after=result_id, stop=stop)
                result_id = used.message_id
                yield used
                if decision == "stop" or (stop is not None and stop.is_set()):
                    goes_on = False
                    break
            if result_id is None or not goes_on:
                return
            reply = self.go_on(result_id, **again)

    # What was done

    def log(self, chat_id: int | None = None, *, limit: int = 100) -> list[ToolCall]:
        """The calls that were made, newest first."""
        return self._assistant.store.tool_calls.list(chat_id=chat_id, limit=limit)

    def undo(self, chat_id: int, call_id: int | None = None) -> str:
        """Take back what a call wrote: the newest one, if none is named. Says what was done.

        Raises:
            UsageError: there is nothing to undo. ToolError: the file has been changed since.
            NotFoundError: no such chat or call.
        """
        from pathlib import Path

        from ..tools.folder import Folder
        from ..tools.writing import Writing

        store = self._assistant.store
        self._assistant.chat(chat_id)
        record = store.tool_calls.undoable(chat_id) if call_id is None else store.tool_calls.get(call_id)
        if record is None or record.chat_id != chat_id or record.state != "done" or not record.after_sha256:
            raise NothingError(_("There is nothing to undo: only what was written can be taken back, and only once."))
        done = Writing(Folder(Path(record.workspace))).undo(Undo(record.path, record.before, record.after_sha256))
        store.tool_calls.set_state(record.id, "undone")
        return done


def kept(store: Store, tools: Sequence[ToolSpec]) -> int:
    """The id under which a set of tools is kept; 0 for none."""
    listed = [[tool.name, tool.description, tool.parameters] for tool in tools]
    return store.tool_calls.toolset_id(json.dumps(listed) if listed else "")


def _state(declined: bool, result: Result, score: int) -> ToolState:
    if declined:
        return "declined"
    return "stopped" if result.stopped else "failed" if score < 0 else "done"


def _note_outcome(store: Store, reply_id: int, score: int, *, first: bool) -> None:
    """What the tools said of the reply that called them. Of several calls, one that failed decides."""
    if not first:
        earlier = [signal.score for signal in store.signals.of([reply_id])[reply_id] if signal.source == "tool"]
        score = min([score, *earlier]) if -1 in (score, *earlier) else max([score, *earlier])
    store.signals.add(reply_id, "tool", score)
