"""Whole programs on packages of PyPI: ahead.py PROGRAM SIZE. Each imports its package alone and prints a number."""

import random
import sys

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def sentences(count: int) -> list[str]:
    """Sentences of random words, the same for each run."""
    source = random.Random(1)
    words = ["".join(source.choice(LETTERS) for _ in range(source.randint(2, 9))) for _ in range(2000)]
    return [" ".join(source.choice(words) for _ in range(source.randint(5, 20))) + "." for _ in range(count)]


def docutils(size: int) -> int:
    import docutils.core

    lines = ["Title", "=====", ""]
    for i, text in enumerate(sentences(size)):
        if i % 10 == 0:
            lines += [f"Section {i}", "-" * 20, ""]
        lines += [f"{text} *emph* ``code`` `ref{i}`_", "", f".. _ref{i}: http://x/{i}", "", f"- {text}", "- b", ""]
    settings = {"report_level": 5}
    return len(docutils.core.publish_string("\n".join(lines), writer="html5", settings_overrides=settings))


def html5lib(size: int) -> int:
    import html5lib

    row = "<div class='c{0}'><p>{1}<b>x<i>y</b></i></p><table><tr><td>{0}<td>z</table></div>"
    page = "".join(row.format(i, text) for i, text in enumerate(sentences(size)))
    return sum(1 for _ in html5lib.parse(f"<html><body>{page}</body></html>").iter())


def lark(size: int) -> int:
    import lark

    grammar = r"""?start: value
        ?value: object | array | STRING | NUMBER
        array: "[" [value ("," value)*] "]"
        object: "{" [pair ("," pair)*] "}"
        pair: STRING ":" value
        STRING: /"[^"]*"/
        NUMBER: /-?\d+/
        %ignore /[ \n]+/
    """
    text = ", ".join(f'{{"a{i}": [{i}, {i * i}], "b": {{"c": "x"}}}}' for i in range(size))
    return sum(1 for _ in lark.Lark(grammar, parser="earley").parse(f"[{text}]").iter_subtrees())


def mistune(size: int) -> int:
    import mistune

    source = random.Random(3)
    forms = (
        "# {0}\n",
        "* {0}\n* *{0}*\n",
        "> {0} [link](http://x/{1})\n",
        "`{0}` and **bold {1}**\n",
        "{0}\n",
        "{0}\n",
    )
    return len(mistune.html("\n".join(source.choice(forms).format(text, i) for i, text in enumerate(sentences(size)))))


def networkx(size: int) -> int:
    import networkx

    source = random.Random(5)
    graph = networkx.Graph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from((i, source.randrange(size)) for i in range(size) for _ in range(3))
    return round(sum(networkx.betweenness_centrality(graph).values()))


def pygments(size: int) -> int:
    import pygments
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    code = "class C{0}:\n    '''doc {0}'''\n    def m(self, x={0}):\n        return [x[k] + {0}.5 for k in x] if x else 0\n\n"
    return len(pygments.highlight("".join(code.format(i) for i in range(size)), PythonLexer(), HtmlFormatter()))


def pyparsing(size: int) -> int:
    import pyparsing

    source = random.Random(2)
    common = pyparsing.pyparsing_common
    levels = [("*", 2, pyparsing.opAssoc.LEFT), ("+", 2, pyparsing.opAssoc.LEFT)]
    grammar = pyparsing.infix_notation(common.number | common.identifier, levels)
    terms = [f"({source.randint(1, 99)} * x{source.randrange(9)})" for _ in range(4 * size)]
    return sum(len(grammar.parse_string(" + ".join(terms[i : i + 4]))) for i in range(0, len(terms), 4))


def simpy(size: int) -> int:
    import simpy

    source = random.Random(1)

    def customer(counter):  # type: ignore[no-untyped-def] (simpy has no types)
        with counter.request() as turn:
            yield turn
            yield counter._env.timeout(source.expovariate(1.2))

    def arrivals(world, counter):  # type: ignore[no-untyped-def] (simpy has no types)
        for _ in range(size):
            world.process(customer(counter))
            yield world.timeout(source.expovariate(1.0))

    world = simpy.Environment()
    world.process(arrivals(world, simpy.Resource(world, 1)))
    world.run()
    return round(world.now)


def sqlparse(size: int) -> int:
    import sqlparse

    columns = ", ".join(f"t{i}.c{i} + {i} AS x{i}" for i in range(size))
    joins = " ".join(f"JOIN tab{i} t{i} ON t{i}.id = t0.id AND t{i}.v > {i}" for i in range(1, size))
    query = f"SELECT {columns} FROM tab0 t0 {joins} WHERE t0.a IN (SELECT b FROM z WHERE q = 'u') ORDER BY x0;"
    return len(sqlparse.format(query, reindent=True, keyword_case="upper"))


def tinydb(size: int) -> int:
    import tinydb
    from tinydb.storages import MemoryStorage

    table = tinydb.TinyDB(storage=MemoryStorage)
    for i in range(size):
        table.insert({"id": i, "group": i % 7})
    query = tinydb.Query()
    return sum(len(table.search((query.id == i) | (query.group == 9))) for i in range(0, size, 4))


if __name__ == "__main__":
    print(globals()[sys.argv[1]](int(sys.argv[2])))
