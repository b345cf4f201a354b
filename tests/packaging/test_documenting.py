"""The pages that are made from the program: nothing is missing in them, and the site is built without a warning."""

from __future__ import annotations

import ast
import html
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from documenting import commands, completions, errors, house, inserted, licences, manpages, settings

from claw_local import settings_file
from tests.app.test_themes import contrast
from tests.test_house import LAYERS, imports_of, modules


@pytest.fixture(scope="module")
def tree() -> commands.Command:
    return commands.read()


def test_every_command_and_option_that_is_not_hidden_is_on_the_page(tree: commands.Command) -> None:
    import typer

    from claw_local.cli.main import app

    def shown(command: object) -> Iterator[tuple[str, object]]:
        for name, part in getattr(command, "commands", {}).items():
            if not part.hidden:
                yield name, part
                yield from shown(part)

    page = commands.as_markdown(tree)
    found = list(shown(typer.main.get_command(app)))
    assert len(found) == len(list(tree.walk())) - 1
    for name, part in found:
        assert re.search(rf"^##+ claw-local (\w[\w-]* )*{name}$", page, re.MULTILINE), name
        for parameter in part.params:  # type: ignore[attr-defined]
            for option in parameter.opts if parameter.param_type_name == "option" else ():
                assert option in page, (name, option)
    assert "hints drop" not in page, "a hidden one"


@pytest.mark.parametrize("text", ["x<=1 [a|b] *c* _d_ \\e #f", "a `b_c|d` e_f", "one ` alone", "<b>&amp;</b>"])
def test_text_is_shown_as_it_is(text: str) -> None:
    markdown = pytest.importorskip("markdown")
    shown = markdown.markdown(f"| | |\n|---|---|\n| x | {commands._safe(text)} |", extensions=["tables"])
    cell = re.findall(r"<td>(.*?)</td>", shown, re.DOTALL)[1]
    assert html.unescape(re.sub(r"</?code>", "`", cell)) == text


def test_what_an_option_takes_is_said_as_people_write_it(tree: commands.Command) -> None:
    (ask,) = [command for command in tree.walk() if command.name == "claw-local ask"]
    told = dict(ask.options)
    assert {"--chat N", "--temperature X", "--stop TEXT", "--json"} <= set(told)
    assert "<" not in " ".join(told)
    assert ask.usage.endswith("[question]...")


def test_every_setting_has_its_default_range_meaning_and_variable(tmp_path: Path) -> None:
    page = settings.as_markdown()
    for name in settings_file.names():
        part = page.partition(f"\n### {name}\n")[2].partition("\n#")[0]
        assert re.search(r"Default: `.+`\. It takes .+\. Variable: `CLAW_LOCAL_\w+__\w+`", part), name
        assert len(part.split("Default:")[0].split()) > 2, f"{name} has no docstring"


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not here")
def test_the_manual_has_a_page_for_each_command_and_troff_sees_nothing_wrong(
    tree: commands.Command, tmp_path: Path
) -> None:
    pages = manpages.pages(tree, "1.2.3")
    assert len(pages) == len(list(tree.walk()))
    for name, page in pages.items():
        (tmp_path / name).write_text(page, "utf-8")
    command = ["groff", "-man", "-ww", "-z", "-K", "utf8", *(str(tmp_path / name) for name in pages)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    shown = subprocess.run(
        ["groff", "-man", "-T", "ascii", "-P-cbou", str(tmp_path / "claw-local-ask.1")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "claw-local-ask - Ask one question and print the answer" in shown
    assert "--max-tokens N" in shown and "claw-local(1)" in shown


def test_the_date_of_the_manual_can_be_fixed(tree: commands.Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert '"1970-01-02"' in manpages.pages(tree, "1")["claw-local.1"]


def test_the_shells_completions_are_scripts() -> None:
    scripts = completions.scripts()
    assert set(scripts) == {"claw-local.bash", "_claw-local", "claw-local.fish", "claw-local.ps1"}
    assert all("_CLAW_LOCAL_COMPLETE" in script for script in scripts.values())
    assert scripts["_claw-local"].startswith("#compdef claw-local\n")
    if shutil.which("bash"):
        subprocess.run(["bash", "-n"], input=scripts["claw-local.bash"], text=True, check=True)


def test_no_sentence_of_an_error_is_missing(root: Path) -> None:
    """Looked for in another way than the list is made: each text of three words in a raised error's call."""
    page = " ".join(
        re.sub(r"\\([\\*_{}\[\]>|#`])", r"\1", errors.as_markdown()).replace("&lt;", "<").replace("&amp;", "&").split()
    )
    ours = errors._source().errors
    missing = []
    for parent in ("claw_local", "app/claw_app", "trainer/claw_trainer"):
        for file in (root / parent).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
                    continue
                name = getattr(node.exc.func, "id", "")
                if name not in ours or not node.exc.args:
                    continue
                for text in ast.walk(node.exc.args[0]):
                    told = " ".join(str(text.value).split()) if isinstance(text, ast.Constant) else ""
                    told = errors._FILLED.sub(errors.GAP, told)  # As `_()` fills it in.
                    if len(told.split()) > 2 and told not in page:
                        missing.append(f"{file.name}:{node.lineno} {told}")
    assert not missing


def test_errors_that_are_put_together_elsewhere_are_found_too() -> None:
    texts = [said.text for said in errors.collect()]
    assert any(text.startswith("There is nothing new to learn yet.") for text in texts), "from a function"
    assert any(text.endswith("or in the settings as model.path.") for text in texts), "from a constant"
    assert len(texts) == len(set(zip(texts, [said.area for said in errors.collect()], strict=True)))


def test_each_remedy_is_for_a_message_that_still_exists_and_stands_below_it() -> None:
    page = errors.as_markdown()
    assert len(errors.remedies()) > 5
    for message, text in errors.remedies():
        assert any(message in said.text for said in errors.collect()), message
        assert commands._safe(text) in page


def test_the_map_shows_what_is_really_imported_and_every_arrow_goes_down() -> None:
    drawn = house.arrows()
    real: dict[str, set[str]] = {part: set() for part in drawn}
    for package in ("claw_local", "claw_app", "claw_trainer"):
        for file, where in modules(package):
            part = where.split(".")[0] if package != "claw_local" else [*where.split("."), file.stem][1]
            for name in imports_of(file, where) if part in real else ():
                top, _, rest = name.partition(".")
                other = rest.partition(".")[0] if top == "claw_local" else top
                if other in real and other != part:
                    real[part].add(other)
    assert drawn == real
    for part, others in drawn.items():
        for other in others & set(LAYERS) if part in LAYERS else ():
            assert LAYERS[other] <= LAYERS[part], (part, other)
    height = {part: number for number, row in enumerate(house.rows(drawn)) for part in row}
    assert set(height) == set(drawn)
    for part, others in drawn.items():
        for other in others:
            assert height[other] < height[part] or part in house._reached(drawn, other), (part, other)


def test_only_the_assistant_and_what_it_is_made_of_import_each_other() -> None:
    rings = {ring for ring in house._rings(house.arrows()).values() if len(ring) > 1}
    assert rings == {frozenset({"assistant", "talking"})}


RING: house.Arrows = {"top": {"a", "low"}, "a": {"b"}, "b": {"c", "low"}, "c": {"a", "low"}, "low": set()}


@pytest.mark.parametrize("drawn", [house.arrows(), RING], ids=["ours", "with a ring"])
def test_every_part_is_drawn_and_no_way_is_lost(drawn: house.Arrows) -> None:
    svg = house.as_svg(drawn)
    for part in drawn:
        assert f">{part}</text>" in svg
    kept: house.Arrows = {part: set() for part in drawn}
    for part, other in house._needed(drawn):
        kept[part].add(other)
    assert sum(map(len, kept.values())) < sum(map(len, drawn.values()))
    for part in drawn:
        assert house._reached(kept, part) == house._reached(drawn, part), part


def test_parts_that_import_each_other_share_a_row() -> None:
    assert house.rows(RING) == [["low"], ["a", "b", "c"], ["top"]]


def test_the_tables_and_keys_and_contrasts_are_the_programs_own() -> None:
    tables = re.findall(r"^- \*\*(\w+)\*\*", inserted.schema(), re.MULTILINE)
    assert {"chats", "messages", "signals", "hints", "samples", "adapters", "runs", "flags"} <= set(tables)
    assert not [table for table in tables if "fts" in table]
    assert re.search(r"^\| Ctrl\+N \| `/new` \|", inserted.app_keys(), re.MULTILINE)
    assert "claw-contrast" in inserted.contrast()
    assert inserted.ratio("#767676", "#ffffff") == pytest.approx(contrast("#767676", "#ffffff"))
    with pytest.raises(ValueError, match="no part of a page"):
        inserted.fill("<!-- nonsense -->")


def test_every_package_that_always_comes_along_has_a_licence() -> None:
    page = licences.as_markdown()
    for name, extra in licences.declared():
        assert f"| {name} |" in page
        if not extra:
            line = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
            assert "not told" not in line and "not installed" not in line, line


def test_the_site_is_built_without_a_warning(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("material", reason="the docs extra is not installed")
    pytest.importorskip("mkdocstrings", reason="the docs extra is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=root,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / "site"
    pages = {file.stem for file in site.glob("*.html")}
    assert {file.stem for file in (root / "docs").glob("*.md")} | {"commands", "settings", "errors", "notices"} <= pages
    text = (site / "python.html").read_text("utf-8")
    assert 'id="claw_local.assistant.Assistant.ask"' in text or "Assistant.stream" in text
    # Nothing is fetched from elsewhere when a page is read.
    for file in site.glob("*.html"):
        fetched = re.findall(r'(?:src|rel="stylesheet" href)="(https?:[^"]+)"', file.read_text("utf-8"))
        assert not fetched, (file.name, fetched)
