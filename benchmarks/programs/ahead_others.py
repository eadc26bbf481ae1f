"""Whole programs on ten further packages of PyPI: ahead_others.py PROGRAM SIZE. Nothing was chosen by them."""

import io
import random
import sys


def words(size: int) -> list[str]:
    source = random.Random(size)
    return [f"w{source.randrange(200)}" for _ in range(size)]


def rdflib(size: int) -> int:
    from rdflib import Graph, Literal, URIRef

    graph = Graph()
    for i, word in enumerate(words(size)):
        graph.add((URIRef(f"http://e/{i}"), URIRef(f"http://p/{i % 7}"), Literal(word)))
    again = Graph().parse(data=graph.serialize(format="turtle"), format="turtle")
    return len(list(again.query("select ?s where { ?s <http://p/3> ?o }")))


def openpyxl(size: int) -> int:
    from openpyxl import Workbook, load_workbook

    book = Workbook()
    for i, word in enumerate(words(size)):
        book.active.append([i, word, i * 2.5, f"=A{i + 1}*2"])
    file = io.BytesIO()
    book.save(file)
    file.seek(0)
    return load_workbook(file).active.max_row


def markdown_it(size: int) -> int:
    from markdown_it import MarkdownIt

    source, text = random.Random(size), words(5 * size)
    forms = ["# {}", "* {} *b* c", "> {} `x`", "{} [l](http://a.b/)", "1. {}"]
    lines = [source.choice(forms).format(" ".join(text[5 * i : 5 * i + 5])) for i in range(size)]
    return len(MarkdownIt().render("\n".join(lines)))


def yaml(size: int) -> int:
    import yaml

    tree = {f"k{i}": {"a": [word, i, {"x": word}], "b": i * 1.5} for i, word in enumerate(words(size))}
    return len(yaml.load(yaml.dump(tree, Dumper=yaml.SafeDumper), Loader=yaml.SafeLoader))


def bs4(size: int) -> int:
    from bs4 import BeautifulSoup

    form = "<div class='{0}'><p>{0}<b>{1}</b></p><ul>{2}</ul></div>"
    text = "".join(form.format(word, i, "<li>x</li>" * (i % 5)) for i, word in enumerate(words(size)))
    page = BeautifulSoup(f"<html><body>{text}</body></html>", "html.parser")
    return len(page.select("div p b")) + len(page.prettify())


def intervaltree(size: int) -> int:
    from intervaltree import IntervalTree

    source, tree = random.Random(size), IntervalTree()
    for i in range(size):
        begin = source.randrange(10 * size)
        tree[begin : begin + source.randrange(1, 50)] = i
    found = sum(len(tree[source.randrange(10 * size)]) for _ in range(size))
    tree.merge_overlaps()
    return found + len(tree)


def sqlglot(size: int) -> int:
    import sqlglot

    columns = ", ".join(f"{word}_{i} + {i}" for i, word in enumerate(words(size)))
    joins = " ".join(f"join u{i} on t.a = u{i}.b" for i in range(size // 10))
    where = " and ".join(f"a{i} > {i}" for i in range(size // 2))
    return len(sqlglot.transpile(f"select {columns} from t {joins} where {where}", read="mysql", write="postgres")[0])


def mpmath(size: int) -> int:
    from mpmath import lu_solve, matrix, mp

    mp.dps = 30
    source = random.Random(size)
    return len(lu_solve(matrix([[source.random() for _ in range(size)] for _ in range(size)]), matrix([1] * size)))


def babel(size: int) -> int:
    from babel.messages.catalog import Catalog
    from babel.messages.pofile import read_po, write_po

    catalog = Catalog()
    for i, word in enumerate(words(size)):
        catalog.add(f"{word} {i}", f"t {word}", locations=[("f.py", i)])
    file = io.BytesIO()
    write_po(file, catalog)
    file.seek(0)
    return len(read_po(file))


def sortedcontainers(size: int) -> int:
    from sortedcontainers import SortedDict

    source, known = random.Random(size), SortedDict()
    for i in range(20 * size):
        known[source.randrange(30 * size)] = i
    for _ in range(5 * size):
        known.popitem(source.randrange(len(known)))
    return len(known) + sum(1 for _ in known.irange(10, 3 * size))


print(globals()[sys.argv[1]](int(sys.argv[2])))
