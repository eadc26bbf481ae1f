"""More whole programs on packages of PyPI: ahead_more.py PROGRAM SIZE. Nobody looked at them while perflaw was written."""

import io
import random
import sys

from ahead import sentences


def tinycss2(size: int) -> int:
    import tinycss2

    form = ".c{0} > a:hover, #id{0} {{ color: rgb({0}, 1, 2); margin: {0}px 3em; background: url(x{0}.png) }}"
    rules = tinycss2.parse_stylesheet("\n".join(form.format(i) for i in range(size)), skip_whitespace=True)
    return sum(
        len(tinycss2.parse_declaration_list(one.content)) + len(tinycss2.serialize(one.prelude)) for one in rules
    )


def anytree(size: int) -> int:
    import anytree

    source = random.Random(4)
    nodes = [anytree.Node("root")]
    for i in range(size):
        nodes.append(anytree.Node(f"n{i}", parent=nodes[source.randrange(len(nodes))]))
    return sum(len(one.path) for one in anytree.PreOrderIter(nodes[0])) + nodes[0].height


def pycparser(size: int) -> int:
    from pycparser import c_generator, c_parser

    form = """int f{0}(int a, char *b) {{ int x = a * {0} + 1;
        while (x > 0) {{ x = x - g(b[x], a ? 1 : {0}); if (x == {0}) return x; }} return a + x; }}"""
    tree = c_parser.CParser().parse("\n".join(form.format(i) for i in range(size)))
    return len(c_generator.CGenerator().visit(tree))


def pyflakes(size: int) -> int:
    from pyflakes import api, reporter

    form = """def f{0}(a, b={0}):
    x = [a + j for j in range(b)]
    if x:
        return os.path.join(str(x[0]), f{1}(b))
    y{0} = 3
    return sys.argv
"""
    out = io.StringIO()
    text = "import os, sys\n" + "\n".join(form.format(i, max(i - 1, 0)) for i in range(size))
    api.check(text, "x.py", reporter.Reporter(out, out))
    return len(out.getvalue())


def tomlkit(size: int) -> int:
    import tomlkit

    form = '[section{0}]\nname = "value {0}"\nlist = [1, 2, {0}]\ninline = {{a = {0}, b = "x"}}\n'
    return len(tomlkit.dumps(tomlkit.parse("\n".join(form.format(i) for i in range(size)))))


def jinja2(size: int) -> int:
    import jinja2

    form = "{{% if a{0} %}}<p>{{{{ x|upper }}}} {0}</p>{{% else %}}{{{{ y[{0}] }}}}{{% endif %}}"
    text = "{% for x in xs %}<li>{{ x }}</li>{% endfor %}" + "".join(form.format(i) for i in range(size))
    return len(jinja2.Environment().from_string(text).render(xs=range(size), x="k", y=list(range(size))))


def rich(size: int) -> int:
    from rich.console import Console
    from rich.table import Table

    table = Table("number", "start", "middle", "a", "b")
    for i, text in enumerate(sentences(size)):
        table.add_row(str(i), text[:20], f"[bold]{text[20:40]}[/bold]", "a", "b")
    out = io.StringIO()
    Console(file=out, width=100).print(table)
    return len(out.getvalue())


def textdistance(size: int) -> int:
    import textdistance

    source = random.Random(9)
    texts = ["".join(source.choices("abcd", k=size)) for _ in range(2)]
    return textdistance.Levenshtein(external=False)(*texts)


def constraint(size: int) -> int:
    import constraint

    problem = constraint.Problem()
    problem.addVariables(range(size), range(4))
    for i in range(size):
        for other in (i + 1, i + 2, i + 5):
            if other < size:
                problem.addConstraint(lambda a, b: a != b, (i, other))
    return len(problem.getSolution() or ())


def unidiff(size: int) -> int:
    import difflib

    import unidiff

    source = random.Random(2)
    before = sentences(size)
    after = [text.upper() if source.random() < 0.15 else text for text in before]
    lines = difflib.unified_diff(before, after, "a/x", "b/x", lineterm="")
    return len(str(unidiff.PatchSet("".join(f"{line}\n" for line in lines))))


def ruamel(size: int) -> int:
    from ruamel.yaml import YAML

    form = "key{0}:\n  name: value {0}\n  list: [1, 2, {0}]\n  text: '{1}'"
    yaml, out = YAML(), io.StringIO()
    yaml.dump(yaml.load("\n".join(form.format(i, text) for i, text in enumerate(sentences(size)))), out)
    return len(out.getvalue())


def esprima(size: int) -> int:
    import esprima

    form = """function f{0}(a, b) {{ var x = a * {0} + b[{0}];
        for (var i = 0; i < x; i++) {{ if (x % 2 === 0) g('s{0}', {{k: x}}); }} return x; }}"""
    return len(esprima.parseScript("\n".join(form.format(i) for i in range(size))).body)


def reportlab(size: int) -> int:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate

    out, style = io.BytesIO(), getSampleStyleSheet()["Normal"]
    SimpleDocTemplate(out).build([Paragraph(text, style) for text in sentences(size)])
    return len(out.getvalue())


def sympy(size: int) -> int:
    import sympy

    x = sympy.Symbol("x")
    return len(str(sympy.expand(sum((i + 1) * x**i for i in range(size)) * (x + 1) ** 2).diff(x)))


def pygtrie(size: int) -> int:
    import pygtrie

    trie = pygtrie.StringTrie(separator=" ")
    for text in sentences(size):
        trie[text] = len(text)
    return sum(trie.longest_prefix(f"{text} end").value for text in sentences(size)) + len(trie.keys())


def chess(size: int) -> int:
    import chess

    source, board, length = random.Random(2), chess.Board(), 0
    for _ in range(size):
        moves = list(board.legal_moves)
        if not moves or board.is_game_over():
            board = chess.Board()
            continue
        move = source.choice(moves)
        length += len(board.san(move))
        board.push(move)
    return length


def dulwich(size: int) -> int:
    from dulwich.objects import Blob, Commit, Tree
    from dulwich.repo import MemoryRepo

    repository, parents, files = MemoryRepo(), [], {}
    for i in range(size):
        blob, tree, commit = Blob.from_string(b"line %d\n" % i * 20), Tree(), Commit()
        files[b"f%d" % (i % 50)] = blob.id
        for name, number in files.items():
            tree.add(name, 0o100644, number)
        commit.tree, commit.parents, commit.message = tree.id, parents, b"m%d" % i
        commit.author = commit.committer = b"A <a@b>"
        commit.commit_time = commit.author_time = 1000 + i
        commit.commit_timezone = commit.author_timezone = 0
        for one in (blob, tree, commit):
            repository.object_store.add_object(one)
        parents = [commit.id]
    return sum(len(entry.changes()) for entry in repository.get_walker(parents))


def whoosh(size: int) -> int:
    from whoosh.fields import ID, TEXT, Schema
    from whoosh.filedb.filestore import RamStorage
    from whoosh.qparser import QueryParser

    source = random.Random(3)
    words = [f"w{int(source.paretovariate(0.7)) % 5000}" for _ in range(20000)]
    index = RamStorage().create_index(Schema(id=ID(stored=True), text=TEXT))
    writer = index.writer()
    for i in range(size):
        writer.add_document(id=str(i), text=" ".join(source.choices(words, k=40)))
    writer.commit()
    parser = QueryParser("text", index.schema)
    with index.searcher() as searcher:
        return sum(len(searcher.search(parser.parse(f"w{i + 1} OR w{2 * i + 1}"), limit=10)) for i in range(20))


if __name__ == "__main__":
    print(globals()[sys.argv[1]](int(sys.argv[2])))
