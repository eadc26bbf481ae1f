"""The language server: lenses, hovers and diagnostics for the files that an editor has open."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from perflaw.editor.places import SourceText
from perflaw.editor.remarks import REACH, FunctionLaw, Point, Remarks, hover, judge, lens, plot, read_laws, without_law
from perflaw.errors import PerflawError
from perflaw.laws.errors import LawSyntaxError
from perflaw.notices import shown_by
from perflaw.report.law_words import features_text
from perflaw.report.quantity import percent
from perflaw.report.verdicts import describe

SET_SIZE: Final = "perflaw.setSize"
"""Command of the server: costs at this size, such as ``n=1e6``; without one, at ten times the last."""
MULTIPLES: Final = (REACH, 100, 1)
"""Sizes that the command steps through, as multiples of the largest recorded one."""


class LawServer:
    """What is known of one project, and its answers to an editor."""

    def __init__(
        self, server: LanguageServer, sources: Sequence[str], experiment: str, metric: str, at: Point | None
    ) -> None:
        self.server, self.given, self.experiment, self.metric = server, tuple(sources), experiment, metric
        self.root = Path.cwd()
        self.chosen: Point | None = at
        self.multiple = 0
        self.images = False
        self.remarks = Remarks()
        self.fault: LawSyntaxError | None = None
        self.stamp: object = None
        self.texts: dict[str, tuple[int | None, SourceText]] = {}
        self.reading = asyncio.Lock()
        self.judging: asyncio.Task[None] | None = None

    # ---- What is known.

    @property
    def at(self) -> Point:
        """The size of which costs are told."""
        if self.chosen is not None:
            return self.chosen
        return {name: MULTIPLES[self.multiple] * value for name, value in self.remarks.largest.items()}

    def sources(self) -> list[str]:
        """The law files or experiments given, else the law files at the root, else the experiment."""
        files = sorted(one.name for one in self.root.glob("*.law"))
        return list(self.given) or files or [self.experiment]

    def current(self, sources: Sequence[str]) -> object:
        """Changes when a law file is written or a run is recorded."""
        runs = self.root / ".perflaw" / self.experiment / "runs"
        files = [self.root / f"{one}{end}" for one in sources for end in ("", ".json")]
        files += [runs, *(runs.glob("*/run.json") if runs.is_dir() else ())]
        return [(str(one), one.stat().st_mtime_ns) for one in sorted(files) if one.exists()]

    async def refresh(self, _: types.DidChangeWatchedFilesParams | None = None) -> None:
        """Read the laws if a file of theirs changed; verdicts follow in the background."""
        async with self.reading:
            sources = self.sources()
            stamp = self.current(sources)
            if stamp == self.stamp:
                return
            self.stamp, self.fault = stamp, None
            try:
                self.remarks = await asyncio.to_thread(read_laws, sources, self.metric)
            except LawSyntaxError as error:  # told in the law file itself; the last good laws stay
                self.fault = error
            except PerflawError as error:
                self.remarks = Remarks()
                self.log(str(error))
            if self.judging:
                self.judging.cancel()
            self.judging = asyncio.create_task(self.judge(sources))

    async def judge(self, sources: Sequence[str]) -> None:
        """Hold new recordings against the laws, look for functions without one, and tell the editor."""
        steps: list[Any] = []
        if any((self.root / one).is_file() for one in sources):  # else the laws are those of the recordings themselves
            steps = [(without_law, (self.experiment,)), (judge, (self.experiment, self.metric))]
        for step, arguments in steps:
            try:
                self.remarks = await asyncio.to_thread(step, self.remarks, *arguments)
            except PerflawError as error:  # such as: no recordings but those that the laws were learnt from
                self.log(str(error))
        for uri in list(self.server.workspace.text_documents):
            self.publish(uri)
        self.redraw()

    def begin(self, params: types.InitializeParams) -> None:
        """Take the project's folder and the editor's wishes: ``at`` is a size, ``images`` are wanted in hovers."""
        folder = to_fs_path(params.root_uri) if params.root_uri else params.root_path
        if params.workspace_folders:
            folder = to_fs_path(params.workspace_folders[0].uri)
        if folder and Path(folder).is_dir():
            os.chdir(folder)  # experiments are below the working folder
            self.root = Path(folder)
        wishes = params.initialization_options
        if isinstance(wishes, Mapping):
            self.images = bool(wishes.get("images"))
            if wishes.get("at"):
                self.chosen = parse_size(str(wishes["at"]))

    def log(self, text: str) -> None:
        """A line in the editor's log."""
        self.server.window_log_message(types.LogMessageParams(types.MessageType.Info, f"perflaw: {text}"))

    def redraw(self) -> None:
        """Ask the editor to request lenses anew, if it can."""
        workspace = self.server.client_capabilities.workspace
        if workspace and workspace.code_lens and workspace.code_lens.refresh_support:
            self.server.workspace_code_lens_refresh(None)

    # ---- Where it stands.

    def text(self, uri: str) -> SourceText:
        """The text of an open file; while it cannot be parsed, functions stand where they stood last."""
        document = self.server.workspace.get_text_document(uri)
        known = self.texts.get(uri)
        if known and known[0] == document.version:
            return known[1]
        text = SourceText(Path(document.path or ""), document.source)
        if known and text.functions is None and known[1].functions is not None:
            text.functions = known[1].functions
        self.texts[uri] = (document.version, text)
        return text

    def laws_in(self, uri: str) -> list[tuple[int, FunctionLaw]]:
        """The laws of functions in a file, each with the function's line."""
        text = self.text(uri)
        found = [(text.line_of(one.component), one) for one in self.remarks.laws]
        return [(line, one) for line, one in found if line is not None]

    # ---- Answers.

    async def lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        """A lens above each function with a law; it leads to the next size."""
        await self.refresh()
        laws = self.laws_in(params.text_document.uri)
        return [types.CodeLens(_line(line), types.Command(lens(one, self.at), SET_SIZE)) for line, one in laws]

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        """What is known of the function that begins at a line."""
        await self.refresh()
        line, texts = params.position.line, []
        for place, one in self.laws_in(params.text_document.uri):
            if place == line:
                texts.append(hover(one, self.at))
                if self.images and (svg := plot(one, self.at)):
                    texts.append(f"![plot](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})")
        if not texts:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(texts)), _line(line))

    async def seen(
        self,
        params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams | types.DidSaveTextDocumentParams,
    ) -> None:
        """Tell what is wrong in a file that was opened, changed or saved."""
        await self.refresh()
        self.publish(params.text_document.uri)

    def publish(self, uri: str) -> None:
        """Tell what is wrong in a file: violated laws, functions without a committed one, mistakes in a law file."""
        found = []
        for line, one in self.laws_in(uri):
            if one.violated and one.verdict:
                found.append((line, types.DiagnosticSeverity.Error, "law-violated", describe(one.verdict)))
        text = self.text(uri)
        for component, share in self.remarks.missing:
            place = text.line_of(component)
            if place is not None:
                what = f"{component.name} has {percent(share)} of the time of the newest run and no committed law"
                message = f"{what}: perflaw annotate -o {self.sources()[0]}"
                found.append((place, types.DiagnosticSeverity.Warning, "law-missing", message))
        fault = self.fault
        if fault and fault.file and text.path == (self.root / fault.file):
            found.append((fault.line - 1, types.DiagnosticSeverity.Error, "law-syntax", fault.expected))
        diagnostics = [
            types.Diagnostic(_line(line), message, severity, code, source="perflaw")
            for line, severity, code, message in found
        ]
        self.server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics))

    def choose(self, size: str = "") -> str:
        """Take another size, told as text, or step to the next; gives the size that counts now."""
        if size:
            self.chosen = parse_size(size)
        elif self.chosen is not None:
            self.chosen = {name: 10 * value for name, value in self.chosen.items()}
        else:
            self.multiple = (self.multiple + 1) % len(MULTIPLES)
        self.redraw()
        return features_text(self.at)


def parse_size(text: str) -> dict[str, float]:
    """Read ``n=1e6, k=3``; ValueError for other text."""
    pairs = [part.partition("=") for part in text.split(",")]
    return {name.strip(): float(value) for name, _, value in pairs}


def _line(line: int) -> types.Range:
    """A whole line as a range; editors cut it at the line's end."""
    return types.Range(types.Position(line, 0), types.Position(line, 10_000))


def serve(sources: Sequence[str], experiment: str, metric: str, at: Point | None, version: str) -> None:
    """Answer an editor on standard input and output until it leaves."""
    server = LanguageServer("perflaw", version)
    laws = LawServer(server, sources, experiment, metric, at)
    answers: dict[str, Callable[..., Any]] = {
        types.INITIALIZE: laws.begin,
        types.TEXT_DOCUMENT_DID_OPEN: laws.seen,
        types.TEXT_DOCUMENT_DID_CHANGE: laws.seen,
        types.TEXT_DOCUMENT_DID_SAVE: laws.seen,
        types.WORKSPACE_DID_CHANGE_WATCHED_FILES: laws.refresh,
        types.TEXT_DOCUMENT_CODE_LENS: laws.lenses,
        types.TEXT_DOCUMENT_HOVER: laws.hover,
    }
    for name, answer in answers.items():
        server.feature(name)(partial(answer))  # the server writes attributes onto it, which methods refuse
    server.command(SET_SIZE)(partial(laws.choose))
    with shown_by(laws.log):
        server.start_io()
