"""Whole programs on twenty further packages of PyPI: ahead_others.py PROGRAM SIZE."""

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


def jsonschema(size: int) -> int:
    from jsonschema import Draft7Validator

    schema = {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["id", "name", "tags"],
            "properties": {
                "id": {"type": "integer", "minimum": 0},
                "name": {"type": "string", "pattern": "^[a-z]+"},
                "tags": {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
                "parent": {"anyOf": [{"type": "null"}, {"$ref": "#/items/properties/id"}]},
            },
        },
    }
    source, text = random.Random(7), words(6 * size)
    data = [
        {"id": i, "name": text[i], "tags": list(set(text[6 * i : 6 * i + source.randint(0, 6)])), "parent": i or None}
        for i in range(size)
    ]
    return sum(1 for _ in Draft7Validator(schema).iter_errors(data))


def markdown(size: int) -> int:
    from markdown import markdown

    source = random.Random(7)
    forms = [
        "# {}",
        "* {}",
        "    code {}",
        "{} **bold** [link](http://x.y)",
        "",
        "> {}",
        "| {} | b |\n|---|---|\n| 1 | 2 |\n",
    ]
    lines = (source.choice(forms).format(" ".join(words(source.randint(2, 20)))) for _ in range(size))
    return len(markdown("\n".join(lines), extensions=["tables", "toc", "footnotes"]))


def icalendar(size: int) -> int:
    from icalendar import Calendar

    event = (
        "BEGIN:VEVENT\r\nUID:{0}\r\nDTSTART:20210906T0001{1:02}Z\r\nSUMMARY:{2}\r\n"
        "RRULE:FREQ=DAILY;COUNT={3}\r\nEND:VEVENT\r\n"
    )
    events = "".join(event.format(i, i % 60, " ".join(words(5)), i % 9 + 1) for i in range(size))
    text = f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\n{events}END:VCALENDAR\r\n"
    return len(Calendar.from_ical(text).to_ical())


def functions(size: int) -> str:
    """The source of a module."""
    form = """def f{0}(a, b = {0},*args):
    x = [a+b for a in range({0}) if a % 2==0]
    if x and b>{0}: return {{'a': x, "b": f{1}(1, 2)}}
    for q in x:
        print(q , b)
    return None
"""
    return "\n".join(form.format(i, max(i - 1, 0)) for i in range(size))


def black(size: int) -> int:
    from black import Mode, format_str

    return len(format_str(functions(size), mode=Mode()))


def astroid(size: int) -> int:
    from astroid import nodes, parse

    names = parse(functions(size)).nodes_of_class(nodes.Name)
    return sum(len(list(name.infer())) for name in names if name.name.startswith("f"))


def louvain(size: int) -> int:
    from community import best_partition
    from networkx import powerlaw_cluster_graph

    return len(set(best_partition(powerlaw_cluster_graph(size, 4, 0.2, seed=3), random_state=1).values()))


def cssutils(size: int) -> int:
    import logging

    import cssutils

    cssutils.log.setLevel(logging.FATAL)
    form = ".c{0} > a:hover, #w{0} {{ color: #{1:03x}; margin: {0}px auto; background: url(x{0}.png) no-repeat }}"
    return len(cssutils.parseString("\n".join(form.format(i, i % 4096) for i in range(size))).cssText)


def nltk(size: int) -> int:
    from nltk.collocations import BigramAssocMeasures, BigramCollocationFinder
    from nltk.stem import PorterStemmer
    from nltk.tokenize import TreebankWordTokenizer

    text, stem = " ".join(f"{word}ing, it's" for word in words(size)), PorterStemmer().stem
    finder = BigramCollocationFinder.from_words([stem(one) for one in TreebankWordTokenizer().tokenize(text)])
    return len(finder.nbest(BigramAssocMeasures.pmi, 3))


def dateutil(size: int) -> int:
    from datetime import datetime

    from dateutil.rrule import DAILY, MONTHLY, rrule, rruleset

    start, dates = datetime(2001, 1, 1), rruleset()
    dates.rrule(rrule(DAILY, count=size, dtstart=start, byweekday=(0, 2, 4)))
    dates.exrule(rrule(MONTHLY, count=size // 10 + 1, dtstart=start))
    return len(list(dates))


def textx(size: int) -> int:
    from textx import metamodel_from_str

    grammar = """Model: items*=Item; Item: 'item' name=ID '{' props*=Prop '}' ('->' ref=[Item])?; Prop: key=ID '=' value=INT;"""
    source = random.Random(7)
    text = "\n".join(
        f"item n{i} {{ {' '.join(f'k{j} = {j}' for j in range(i % 6))} }} -> n{source.randrange(size)}"
        for i in range(size)
    )
    return len(metamodel_from_str(grammar).model_from_str(text).items)


print(globals()[sys.argv[1]](int(sys.argv[2])))
