"""The words of the person's language: which it is, and that no language lacks any."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import errors, language
from claw_local.cli.main import run
from claw_local.engine.models import check_model
from claw_local.engine.recommended import ABOUT
from claw_local.errors import ModelError, NotFoundError
from claw_local.paths import Paths
from claw_local.settings import AppSettings
from claw_local.store import Store

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "packaging"))

import languages  # noqa: E402 - packaging/ is a folder of scripts


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Whatever a test speaks, the next one begins in English."""
    yield
    language.use("en")


@pytest.fixture(scope="module")
def code() -> languages.Catalog:
    return languages.extracted()


@pytest.mark.parametrize("code_of", languages.NAMES)
def test_no_text_is_missing_in_a_language(code: languages.Catalog, code_of: str) -> None:
    assert list(languages.problems(code_of, code)) == []
    assert len(languages.read(code_of)) > 500


@pytest.mark.parametrize("code_of", languages.NAMES)
def test_what_is_installed_is_what_was_translated(code_of: str) -> None:
    compiled = languages.compiled(languages.read(code_of))
    assert languages.po_file(code_of).with_suffix(".mo").read_bytes() == compiled, "run: python packaging/languages.py"


def test_what_is_wrong_with_a_language_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(languages, "LOCALE", tmp_path)
    file = languages.po_file("de")
    file.parent.mkdir(parents=True)
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n'
    file.write_text(
        head + 'msgid "Open: {title}"\nmsgstr "Öffnen: {titel}"\n\n#, fuzzy\nmsgid "Quit"\nmsgstr "Ende"\n\n'
        'msgid "Stay"\nmsgstr ""\n\nmsgid "Gone"\nmsgstr "Weg"\n',
        "utf-8",
    )
    code = languages.Catalog()
    for text in ("Open: {title}", "Quit", "Stay", "New"):
        code.add(text)
    found = "\n".join(languages.problems("de", code))
    for said in ("no translation of 'New'", "no longer 'Gone'", "{titel}", "take `fuzzy` away", "'Stay' is not"):
        assert said in found


def test_texts_stand_where_they_can_be_found() -> None:
    """Not inside of an f-string, and not put together at that place."""
    wrong = []
    for source in languages.SOURCES:
        for file in (ROOT / source).rglob("*.py"):
            tree = ast.parse(file.read_text("utf-8"))
            inside = {id(node) for part in ast.walk(tree) if isinstance(part, ast.JoinedStr) for node in ast.walk(part)}
            for node in ast.walk(tree):
                if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in languages.KEYWORDS:
                    continue
                constant = bool(node.args) and isinstance(node.args[0], ast.Constant)
                if (constant and id(node) in inside) or not node.args or isinstance(node.args[0], ast.JoinedStr):
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert not wrong


SAYING = ("typer.echo", "typer.confirm", "typer.prompt")
TOLD = {name for name, kind in vars(errors).items() if isinstance(kind, type)} | {"Check", "Wrong", "DamagedGguf"}
FINISHED = (
    *("adapters", "backup", "cli", "doctor", "engine", "forgetting", "history", "idle", "judge", "memory", "store"),
    *("talking", "tools", "settings.py", "settings_file.py", "invalid.py", "assistant.py"),
)
"""What of claw_local a person reads in their own language."""
ENGLISH = (
    *("cli/bench.py", "cli/judge.py", "cli/judged.py", "cli/judging.py", "cli/serve.py"),
    *("cli/complete.py", "engine/_scoring.py", "idle/probes/gpu.py", "store/served.py"),
    *("talking/offering.py", "talking/serving.py"),
)
"""But these: what a server answers, what measures judges, and what no person meets."""


def _said(tree: ast.AST) -> Iterator[ast.expr]:
    """What is printed, asked, or told as an error or a finding of the doctor; each side of an `if` for itself."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = ast.unparse(node.func)
        said = node.args[2:] if name == "Check" else node.args[:1]
        if name in SAYING or name in TOLD:
            for one in said:
                yield from (one.body, one.orelse) if isinstance(one, ast.IfExp) else (one,)


def _is_marked(said: ast.expr) -> bool:
    """Whether no words of a person's language stand there as they are: a command, a figure and a path are none."""
    if isinstance(said, ast.BinOp):
        return _is_marked(said.left) and _is_marked(said.right)
    parts = said.values if isinstance(said, ast.JoinedStr) else [said]
    words = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant)).strip()
    return words.startswith("claw-local") or not re.search(r"[A-Za-z]{2,}", words)


def _of_its_own(function: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function and not in one within it."""
    inner = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, inner):
            yield from _of_its_own(child)


def test_where_a_text_is_said_nothing_else_is_called_by_that_name() -> None:
    wrong = []
    for source in languages.SOURCES:
        for file in (ROOT / source).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if not isinstance(node, ast.FunctionDef):
                    continue
                names = [one for one in _of_its_own(node) if isinstance(one, ast.Name) and one.id == "_"]
                names += [one for one in ast.walk(node.args) if isinstance(one, ast.arg) and one.arg == "_"]
                says = any(isinstance(one, ast.Call) and getattr(one.func, "id", "") == "_" for one in ast.walk(node))
                if says and any(isinstance(getattr(one, "ctx", ast.Store()), ast.Store) for one in names):
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not wrong


def test_no_sentence_of_the_finished_parts_is_left_in_english() -> None:
    unmarked, seen = [], 0
    for part in FINISHED:
        place = ROOT / "claw_local" / part
        for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
            if file.relative_to(ROOT / "claw_local").as_posix() in ENGLISH:
                continue
            for said in _said(ast.parse(file.read_text("utf-8"))):
                seen += 1
                if not _is_marked(said):
                    unmarked.append(f"{file.relative_to(ROOT)}:{said.lineno} {ast.unparse(said)[:80]}")
    assert not unmarked
    assert seen > 800


@pytest.mark.parametrize(
    ("code", "marked"),
    [
        ('typer.echo("Nothing was found.")', False),
        ('typer.echo(f"Kept in {file}.")', False),
        ('typer.echo(_("Kept in {file}.", file=file))', True),
        ('raise UsageError("No." if strict else _("Yes."))', False),
        ('raise UsageError(_("No") + " " + _("Yes"))', True),
        ('Check("model", "ok", f"{name} is there")', False),
        ('typer.echo(f"  claw-local models pull {name}")', True),
        ('typer.echo(f"  {name}: {size}")', True),
    ],
)
def test_what_is_marked_is_told_from_what_is_not(code: str, marked: bool) -> None:
    assert all(map(_is_marked, _said(ast.parse(code)))) is marked


def test_what_the_list_of_models_says_is_translated() -> None:
    entries = json.loads((ROOT / "claw_local" / "data" / "models.json").read_text("utf-8"))
    assert {entry["about"] for entry in entries} == set(ABOUT)


@pytest.mark.parametrize(
    ("setting", "environment", "chosen"),
    [
        ("auto", {}, "en"),
        ("auto", {"LANG": "de_DE.UTF-8"}, "de"),
        ("auto", {"LANG": "C.UTF-8"}, "en"),
        ("auto", {"LC_ALL": "C", "LANG": "fr_FR.UTF-8"}, "en"),
        ("auto", {"LC_ALL": "", "LC_MESSAGES": "ja_JP", "LANG": "fr_FR"}, "ja"),
        ("auto", {"LANG": "zh_Hant_TW.UTF-8@x"}, "zh"),
        ("auto", {"LANG": "es-MX"}, "es"),
        ("auto", {"LANG": "ko_KR.UTF-8"}, "en"),
        ("fr", {"LANG": "de_DE.UTF-8"}, "fr"),
        ("klingon", {"LANG": "de_DE.UTF-8"}, "de"),
    ],
)
def test_the_setting_goes_before_the_system(setting: str, environment: dict[str, str], chosen: str) -> None:
    assert language.choose(setting, environment) == chosen


def test_the_setting_knows_the_languages_there_are() -> None:
    allowed = AppSettings.model_fields["language"].annotation.__args__  # type: ignore[union-attr]
    assert allowed == ("auto", *language.LANGUAGES) and set(languages.NAMES) == {*language.LANGUAGES} - {"en"}


def test_it_is_read_from_the_file_or_the_environment(home: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "fr_FR.UTF-8")
    language.begin(home)
    assert (language.current(), language._("Quit")) == ("fr", "Quitter")
    home.settings.parent.mkdir(parents=True, exist_ok=True)
    home.settings.write_text('[app]\nlanguage = "de"\n', "utf-8")
    language.begin(home)
    assert (language.current(), language._("Quit")) == ("de", "Beenden")
    monkeypatch.setenv("CLAW_LOCAL_APP__LANGUAGE", "ja")
    language.begin(home)
    assert (language.current(), language._("Quit")) == ("ja", "終了")


def test_numbers_take_their_form_and_their_separators() -> None:
    def hints(number: int) -> str:
        return language.ngettext("{number} hint", "{number} hints", number)

    assert [hints(0), hints(1), hints(1234)] == ["0 hints", "1 hint", "1,234 hints"]
    language.use("de")
    assert [hints(0), hints(1), hints(1234)] == ["0 Hinweise", "1 Hinweis", "1.234 Hinweise"]
    language.use("fr")
    assert [hints(0), hints(1), hints(2)] == ["0 consigne", "1 consigne", "2 consignes"]
    language.use("zh")
    assert [hints(1), hints(2)] == ["1 条提示", "2 条提示"]


def test_what_is_not_known_stays_english() -> None:
    language.use("de")
    assert language._("Nobody ever translated this.") == "Nobody ever translated this." and language._("") == ""
    language.use("xx")
    assert (language.current(), language._("Quit")) == ("en", "Quit")


@pytest.mark.parametrize(
    ("code_of", "chat", "file"),
    [
        ("en", "There is no chat 7.", "There is no model file"),
        ("de", "Einen Chat 7 gibt es nicht.", "Eine Modelldatei"),
        ("ja", "チャット 7 はありません。", "モデルファイル"),
    ],
)
def test_errors_of_the_core_are_said_in_it(home: Paths, tmp_path: Path, code_of: str, chat: str, file: str) -> None:
    store = Store(home)
    language.use(code_of)
    with pytest.raises(NotFoundError) as missing:
        store.chats.get(7)
    with pytest.raises(ModelError) as gone:
        check_model(tmp_path / "{gone}.gguf")
    store.close()
    assert str(missing.value).startswith(chat) and "`claw-local history list`" in str(missing.value)
    assert str(gone.value).startswith(file)
    assert "{gone}.gguf" in str(gone.value) and "--model" in str(gone.value)


def test_commands_speak_it_and_programs_read_english(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "set", "app.language", "de"]) == 0
    capsys.readouterr()
    assert run(["encrypt", "status"]) == 0 and "Der Speicher ist nicht verschlüsselt." in capsys.readouterr().out
    assert (
        run(["config", "get", "app.colour"]) == 2 and "Es gibt keine Einstellung app.colour." in capsys.readouterr().err
    )
    assert run(["config", "get", "app.colour", "--json"]) == 2
    assert "There is no setting app.colour." in capsys.readouterr().err
    assert run(["config", "set", "sampling.temperature", "warm"]) == 2
    assert "kann nicht 'warm' sein: nimmt eine Zahl von 0 bis 5." in capsys.readouterr().err
    assert (
        run(["history", "list", "--limit", "0"]) == 2 and "nimmt eine ganze Zahl von 1 bis" in capsys.readouterr().err
    )


def test_a_home_that_cannot_be_read_is_the_commands_to_tell(
    home: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAW_LOCAL_HOME", "~nobody-of-that-name/home")
    assert run(["config", "path"]) == 1
    assert "There is no folder ~nobody-of-that-name/home" in capsys.readouterr().err


def test_values_that_look_like_places_are_left_alone() -> None:
    language.use("es")
    assert language._("Open: {title}", title="{braces} 100%") == "Abrir: {braces} 100%"


def test_the_version_is_said_before_any_language_is_known() -> None:
    script = (
        "import sys; sys.argv = ['claw-local', '--version']; from claw_local.__main__ import main; main(); "
        "print(sorted({'gettext', 'claw_local.language'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
