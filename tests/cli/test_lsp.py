"""The language server, asked by a real client of the protocol over standard input and output."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import playwright
import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from perflaw.editor.places import SourceText
from perflaw.types import Component
from tests.conftest import PROGRAMS

ROOT = Path(__file__).parents[2]
SOURCE = PROGRAMS / "shifting.py"


class Editor(LanguageClient):
    """A client that keeps the newest diagnostics of each file."""

    def __init__(self):
        super().__init__("test", "1")
        self.found = {}
        self.log = []
        self.told = asyncio.Event()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def diagnostics(params):
            self.found[params.uri] = params.diagnostics
            self.told.set()

        @self.feature(types.WORKSPACE_CODE_LENS_REFRESH)
        def redraw(params):
            return None

        @self.feature(types.WINDOW_LOG_MESSAGE)
        def logged(params):
            self.log.append(params.message)

    async def start(self, folder, *words, **wishes):
        await self.start_io(sys.executable, "-m", "perflaw", "lsp", *words, cwd=folder)
        support = types.CodeLensWorkspaceClientCapabilities(refresh_support=True)
        capabilities = types.ClientCapabilities(workspace=types.WorkspaceClientCapabilities(code_lens=support))
        params = types.InitializeParams(capabilities, root_uri=folder.as_uri(), initialization_options=wishes)
        result = await self.initialize_async(params)
        self.initialized(types.InitializedParams())
        return result.capabilities

    def open(self, path, text=None):
        item = types.TextDocumentItem(path.as_uri(), "python", 1, path.read_text() if text is None else text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))

    async def lenses(self, path):
        params = types.CodeLensParams(types.TextDocumentIdentifier(path.as_uri()))
        return {one.range.start.line: one.command.title for one in await self.text_document_code_lens_async(params)}

    async def hover(self, path, line):
        params = types.HoverParams(types.TextDocumentIdentifier(path.as_uri()), types.Position(line, 2))
        answer = await self.text_document_hover_async(params)
        return answer.contents.value if answer else None

    async def diagnostics(self, path, code):
        """Those of a kind, as soon as there are any."""
        while not (told := [one for one in self.found.get(path.as_uri(), ()) if one.code == code]):
            self.told.clear()
            await asyncio.wait_for(self.told.wait(), 60)
        return told

    async def leave(self):
        await self.shutdown_async(None)
        self.exit(None)
        await asyncio.wait_for(self._server.wait(), 60)
        await self.stop()


def session(talk):
    """Run a conversation; the server ends with it."""

    async def run():
        editor = Editor()
        try:
            await talk(editor)
            await editor.leave()
        finally:
            if editor._server and editor._server.returncode is None:
                editor._server.kill()

    asyncio.run(run())


def line_of(text, start):
    return next(number for number, line in enumerate(text.splitlines()) if line.startswith(start))


@pytest.fixture
def project(shifted, tmp_path):
    """The laws and recordings of a program that has become slower; the law of ``tokens`` is not committed."""
    (tmp_path / ".perflaw").symlink_to(shifted / ".perflaw")
    blocks = (shifted / "perf.law").read_text().split("\n\n")
    (tmp_path / "perf.law").write_text("\n\n".join(one for one in blocks if "shifting.tokens" not in one))
    shutil.copy(shifted / "perf.law.json", tmp_path)
    return tmp_path


def test_an_editor_shows_laws_costs_and_what_is_wrong(project):
    text = SOURCE.read_text()
    build, tokens = line_of(text, "def build"), line_of(text, "def tokens")

    async def talk(editor):
        capabilities = await editor.start(project, "-e", "slow", images=True)
        assert capabilities.code_lens_provider
        assert capabilities.hover_provider
        editor.open(SOURCE)
        lenses = await editor.lenses(SOURCE)
        assert re.match(r"(violated: 1\.\dx the law · )?time per run: .* · grows as n .* at n = 16,000$", lenses[build])
        assert tokens not in lenses

        [slower, *_] = await editor.diagnostics(SOURCE, "law-violated")
        assert slower.range.start.line == build
        assert slower.severity == types.DiagnosticSeverity.Error
        assert "what the law says" in slower.message
        [missing] = await editor.diagnostics(SOURCE, "law-missing")
        assert missing.range.start.line == tokens
        assert "perflaw annotate -o perf.law" in missing.message
        assert (await editor.lenses(SOURCE))[build].startswith("violated: 1.")

        told = await editor.hover(SOURCE, build)
        assert "**violated**" in told
        assert "| n = 1,600 |" in told
        assert "data:image/svg+xml;base64," in told
        assert await editor.hover(SOURCE, build + 1) is None

        params = types.ExecuteCommandParams("perflaw.setSize", ["n=500"])
        assert await editor.workspace_execute_command_async(params) == "n = 500"
        assert (await editor.lenses(SOURCE))[build].endswith("at n = 500")

        law = project / "perf.law"
        law.write_text(law.read_text() + "\nshifting.lookup.time(key) [ns] {\n  Nrom(3, 1);\n}\n")
        editor.open(law)
        [fault] = await editor.diagnostics(law, "law-syntax")
        assert fault.range.start.line == len(law.read_text().splitlines()) - 2
        assert "did you mean `Norm`?" in fault.message

    session(talk)


PYTHON = """
class Table:
    @property
    def size(self):
        def inner():
            return [n for n in range(3)]
        return inner()

    async def read(self): pass

if True:
    def late(): pass
"""


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("data.shop.Table.size", 3),
        ("data.shop.Table.size.<locals>.inner", 4),
        ("data.shop.Table.read", 8),
        ("data.shop.late", 11),
        ("data.shop.<module>", 0),
        ("data.shop.gone", None),
        ("data.other.late", None),
        ("shop.late", 11),
    ],
)
def test_functions_of_python_are_found_by_name(tmp_path, name, line):
    path = tmp_path / "data" / "shop.py"
    text = SourceText(path, PYTHON)
    assert text.line_of(Component(name, "/elsewhere/shop.py", 40)) == line
    assert SourceText(path, PYTHON + "def broken(:").functions is None


def test_a_function_of_another_file_of_the_same_name_is_not_taken(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shop.py").write_text(PYTHON)
    recorded = Component("shop.late", str(tmp_path / "a" / "shop.py"), 12)
    assert SourceText(tmp_path / "a" / "shop.py", PYTHON).line_of(recorded) == 11
    assert SourceText(tmp_path / "b" / "shop.py", PYTHON).line_of(recorded) is None


def test_functions_of_c_are_found_near_where_they_were(tmp_path):
    text = SourceText(tmp_path / "src" / "sort.c", "int sort(int *v);\n\n\nint sort(int *v)\n{\n  resort(v);\n}\n")
    assert text.line_of(Component("sort", "/build/src/sort.c", 5)) == 3
    assert text.line_of(Component("app::sort(int*)", "/build/src/sort.c", 1)) == 0
    assert text.line_of(Component("sort", "/build/other/sort.c", 5)) is None


VSCODE = """
const Module = require("module");
const told = { watched: [] };
const vscode = {
  workspace: {
    getConfiguration: () => ({ get: (key) => ({ command: ["perflaw", "lsp"], at: "n=1e6" })[key] }),
    workspaceFolders: [{ uri: { fsPath: "/project" } }],
    createFileSystemWatcher: (glob) => told.watched.push(glob),
  },
  window: { showInputBox: async () => "n=5" },
  commands: { registerCommand: (name, run) => (told[name] = run) },
};
class LanguageClient {
  constructor(id, name, server, options) { Object.assign(told, { server, options }); }
  start() { told.started = true; }
  async sendRequest(...request) { told.request = request; }
}
const known = { vscode, "vscode-languageclient/node": { LanguageClient } };
const load = Module._load;
Module._load = (name, ...rest) => known[name] || load(name, ...rest);
require(process.argv[2]).activate({ subscriptions: [] });
told["perflaw.chooseSize"]().then(() => console.log(JSON.stringify(told)));
"""


def test_the_extension_of_vs_code_starts_the_server_and_asks_for_sizes(tmp_path):
    folder = ROOT / "editors" / "vscode"
    package = json.loads((folder / "package.json").read_text())
    (tmp_path / "stub.js").write_text(VSCODE)
    done = subprocess.run(
        [Path(playwright.__file__).parent / "driver" / "node", tmp_path / "stub.js", folder / package["main"]],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["started"]
    assert told["server"] == {"command": "perflaw", "args": ["lsp"], "options": {"cwd": "/project"}}
    assert told["options"]["initializationOptions"] == {"at": "n=1e6", "images": True}
    assert told["request"][1] == {"command": "perflaw.setSize", "arguments": ["n=5"]}
    assert [one["command"] for one in package["contributes"]["commands"]] == ["perflaw.chooseSize"]
