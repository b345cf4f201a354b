"""The models of this machine: listed, found by name, put into use, taken in and removed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import gguf
import pytest

from claw_local import Assistant
from claw_local.engine import described
from claw_local.engine.catalog import Models
from claw_local.engine.gguf_file import read_header
from claw_local.engine.recommended import Memory, recommend
from claw_local.errors import ModelError, NotFoundError, UsageError
from claw_local.paths import Paths
from claw_local.settings import load
from tests.engine.small_gguf import write_gguf


@pytest.fixture(autouse=True)
def _nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program of the machine the tests run on is looked into."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "person"))
    for name in ("OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


def models(home: Paths) -> Models:
    return Models(home, load(home))


def test_the_embedded_model_is_listed_with_what_its_header_says(home: Paths, model_path: Path) -> None:
    (only,) = models(home).list()
    assert (only.source, only.path, only.in_use) == ("embedded", model_path, True)
    assert (only.parameters, only.quantisation, only.architecture) == (134_515_008, "Q4_1", "llama")
    assert only.size_bytes == model_path.stat().st_size


def test_only_what_can_chat_is_listed_and_links_do_not_double_it(home: Paths) -> None:
    home.make()
    real = write_gguf(home.models / "real.gguf", file_type=15)
    (home.models / "zz-link.gguf").symlink_to(real)
    write_gguf(home.models / "eyes.gguf", "clip")
    write_gguf(home.models / "lora.gguf", kind="adapter")
    write_gguf(home.models / "vectors.gguf", "nomic-bert")
    (home.models / "cut.gguf").write_bytes(real.read_bytes()[:200])
    (home.models / "empty.gguf").write_bytes(b"")
    (home.models / "dangling.gguf").symlink_to(home.models / "gone")
    found = [model for model in models(home).list() if model.source == "models"]
    assert [(model.name, model.quantisation, model.parameters) for model in found] == [("real", "Q4_K_M", 64)]


def test_a_split_model_is_listed_once_with_all_its_weights(home: Paths) -> None:
    home.make()
    parts = [write_gguf(home.models / f"big-0000{n}-of-00002.gguf") for n in (1, 2)]
    (found,) = [model for model in models(home).list() if model.source == "models"]
    assert (found.name, found.parameters, found.chooses) == ("big", 128, "big-00001-of-00002.gguf")
    assert found.size_bytes == sum(part.stat().st_size for part in parts)
    parts[1].unlink()
    assert [model.source for model in models(home).list()] == ["embedded"]
    with pytest.raises(ModelError, match=r"split.*00002-of-00002"):
        models(home).show(str(parts[0]))


def test_headers_are_read_once_and_again_when_the_file_changes(home: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    home.make()
    write_gguf(home.models / "real.gguf")
    read: list[str] = []

    def counted(path: Path) -> object:
        read.append(path.name)
        return read_header(path)

    monkeypatch.setattr(described, "read_header", counted)
    first = models(home).list()
    assert "real.gguf" in read
    read.clear()
    assert models(home).list() == first
    assert read == []
    write_gguf(home.models / "real.gguf", weights=128)
    assert max(model.parameters for model in models(home).list() if model.source == "models") == 128
    assert read == ["real.gguf"]
    (home.data / described.KNOWN_FILE).write_text('{"x": 3, "y": {"mark": 1, "said": 2}}')
    assert [model.name for model in models(home).list()] == [model.name for model in first]


def test_using_a_model_tries_it_and_writes_it_down(home: Paths, model_path: Path) -> None:
    home.make()
    home.settings.write_text("# mine\n[model]\ncontext = 600\n")
    (home.models / "copy.gguf").symlink_to(model_path)
    with Assistant.open() as assistant:
        assistant.models.use("embedded")
        assert assistant.models.use("copy.gguf").in_use
        assert assistant.model_path == home.models / "copy.gguf"
    assert load(home).model.path == "copy.gguf"
    assert home.settings.read_text().startswith("# mine")
    models(home).use("embedded")
    assert load(home).model.path == ""


def test_a_model_that_does_not_load_is_not_put_into_use(home: Paths) -> None:
    home.make()
    write_gguf(home.models / "hollow.gguf")
    with pytest.raises(ModelError):
        models(home).use("hollow")
    assert load(home).model.path == ""


def test_a_model_is_found_by_name_file_or_path_and_a_slip_is_answered_with_the_closest(
    home: Paths, tmp_path: Path
) -> None:
    home.make()
    kept = write_gguf(home.models / "Nice-Model-Q4_0.gguf")
    elsewhere = write_gguf(tmp_path / "elsewhere.gguf")
    for name in ("Nice-Model-Q4_0", "nice-model-q4_0", "Nice-Model-Q4_0.gguf", str(kept)):
        assert models(home).find(name).path == kept
    assert models(home).find(str(elsewhere)).chooses == str(elsewhere)
    with pytest.raises(NotFoundError, match="Did you mean Nice-Model-Q4_0"):
        models(home).find("Nice-Modle-Q4_0")
    words = tmp_path / "words.gguf"
    words.write_text("just words")
    with pytest.raises(ModelError, match="not a GGUF"):
        models(home).find(str(words))


def test_adding_takes_a_file_in_and_removing_takes_it_out_again(home: Paths, tmp_path: Path) -> None:
    source = write_gguf(tmp_path / "mine.gguf")
    added = models(home).add(source)
    assert (added.chooses, added.path) == ("mine.gguf", home.models / "mine.gguf")
    assert models(home).add(source).chooses == "mine.gguf", "adding it again changes nothing"
    source.unlink()
    assert models(home).find("mine").parameters == 64
    assert models(home).remove("mine") == [home.models / "mine.gguf"]
    assert list(home.models.iterdir()) == []


def test_a_link_points_to_the_file_and_removing_it_leaves_the_file(home: Paths, tmp_path: Path) -> None:
    source = write_gguf(tmp_path / "mine.gguf")
    models(home).add(source, link=True)
    assert (home.models / "mine.gguf").is_symlink()
    models(home).remove("mine")
    assert source.is_file() and not (home.models / "mine.gguf").exists()


def test_a_copy_is_made_where_the_disk_cannot_share(
    home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_gguf(tmp_path / "mine.gguf")

    def refuse(*_: object) -> None:
        raise OSError("another disk")

    monkeypatch.setattr("os.link", refuse)
    models(home).add(source)
    assert (home.models / "mine.gguf").read_bytes() == source.read_bytes()
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 1000})())
    with pytest.raises(ModelError, match="--link"):
        models(home).add(write_gguf(tmp_path / "more.gguf"))
    assert [file.name for file in home.models.iterdir()] == ["mine.gguf"]


def test_what_must_stay_is_not_removed_or_overwritten(home: Paths, tmp_path: Path) -> None:
    home.make()
    write_gguf(home.models / "mine.gguf")
    other = write_gguf(tmp_path / "mine.gguf", weights=128)
    with pytest.raises(UsageError, match=r"another mine\.gguf"):
        models(home).add(other)
    for name, word in ((str(other), "not in the models folder"), ("embedded", "pip")):
        with pytest.raises(UsageError, match=word):
            models(home).remove(name)
    home.settings.write_text('[model]\npath = "mine.gguf"\n')
    with pytest.raises(UsageError, match="in use"):
        models(home).remove("mine")
    assert other.is_file() and (home.models / "mine.gguf").is_file()


@contextmanager
def played_server(answers: dict[str, object]) -> Iterator[str]:
    """A server on loopback that plays the listings of Ollama (/api/tags) and of the OpenAI API (/v1/models)."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.reply(200 if self.path in answers else 404, answers.get(self.path, {}))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.reply(404, {"error": "model not found"})

        def reply(self, status: int, answer: object) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_the_models_of_running_servers_are_listed_and_can_be_put_into_use(
    home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: dict[str, object] = {
        "/api/tags": {
            "models": [
                {
                    "name": "llama3.2:1b",
                    "model": "llama3.2:1b",
                    "size": 1_300_000_000,
                    "details": {"parameter_size": "1.2B", "quantization_level": "Q8_0"},
                }
            ]
        },
        "/v1/models": {"object": "list", "data": [{"id": "served", "object": "model"}]},
    }
    with played_server(answers) as address:
        monkeypatch.setenv("OLLAMA_HOST", address)
        monkeypatch.setenv("CLAW_LOCAL_OPENAI__URL", f"http://{address}/v1")
        served = {model.chooses: model for model in models(home).list() if model.path is None}
        assert set(served) == {"ollama:llama3.2:1b", "openai:served"}
        told = served["ollama:llama3.2:1b"]
        assert (told.size_bytes, told.parameters, told.quantisation) == (1_300_000_000, 1_200_000_000, "Q8_0")
        with pytest.raises(ModelError, match=r"llama3\.2:2b"):
            models(home).use("ollama:llama3.2:2b")
        assert models(home).use("ollama:llama3.2:1b").in_use
    assert load(home).model.path == "ollama:llama3.2:1b"
    assert not any(model.in_use for model in models(home).list())


def test_servers_that_do_not_answer_do_not_hold_up_the_list(home: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("OLLAMA_HOST", address)
        monkeypatch.setenv("CLAW_LOCAL_OPENAI__URL", f"http://{address}/v1")
        models(home).list()  # Imports take their time once.
        started = time.perf_counter()
        assert [model.source for model in models(home).list()] == ["embedded"]
        assert time.perf_counter() - started < 1.5


@pytest.mark.parametrize(
    ("memory", "first"),
    [
        (Memory(2 * 2**30), "Qwen2.5 0.5B Instruct"),
        (Memory(8 * 2**30), "Qwen3 4B Instruct 2507"),
        (Memory(64 * 2**30), "Qwen3 4B Instruct 2507"),
        (Memory(16 * 2**30, gpu=8 * 2**30), "Qwen2.5 7B Instruct"),
        (Memory(64 * 2**30, gpu=24 * 2**30), "Qwen2.5 14B Instruct"),
        (Memory(2**29), "SmolLM2 360M Instruct"),
    ],
)
def test_the_first_recommendation_learns_and_is_quick_on_this_machine(memory: Memory, first: str) -> None:
    suggested = recommend(memory)
    assert suggested[0].name == first
    assert suggested[0].learns
    assert all(one.why.strip() for one in suggested)


def test_the_recommended_files_are_told_completely() -> None:
    everything = recommend(Memory(256 * 2**30, gpu=80 * 2**30))
    assert len({one.name for one in everything}) == len(everything) >= 8
    for one in everything:
        assert one.repo.count("/") == 1 and one.file.endswith(".gguf") and one.size_bytes > 10**8
        assert one.licence == "Apache-2.0"
    assert any(not one.learns and "cannot be trained" in one.why for one in everything)


def test_names_of_quantisations_are_those_of_the_gguf_package() -> None:
    known = {int(kind): kind.name.removeprefix("MOSTLY_").removeprefix("ALL_") for kind in gguf.LlamaFileType}
    assert {kind: known.get(kind) for kind in described.FILE_TYPES} == described.FILE_TYPES


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("Qwen3-4B-Q4_K_M.gguf", "Q4_K_M"),
        ("m-UD-Q4_K_XL.gguf", "Q4_K_XL"),
        ("smollm2-360m-instruct-q8_0.gguf", "Q8_0"),
        ("a-IQ4_XS.gguf", "IQ4_XS"),
        ("a.Q6_K.gguf", "Q6_K"),
        ("a-bf16-00001-of-00002.gguf", "BF16"),
        ("a-Q4_1.gguf", "Q4_1"),
        ("plain.gguf", ""),
    ],
)
def test_a_quantisation_is_read_from_a_file_s_name(name: str, quant: str) -> None:
    assert described.quant_in(name) == quant


def test_a_list_of_fifty_files_comes_at_once(home: Paths, model_path: Path) -> None:
    home.make()
    for number in range(50):
        write_gguf(home.models / f"model-{number}.gguf")
    models(home).list(servers=False)
    started = time.process_time()
    assert len(models(home).list(servers=False)) == 51
    assert time.process_time() - started < 0.5
