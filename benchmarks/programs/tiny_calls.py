"""Programs on packages of PyPI that make many tiny calls, some of them recursive: tiny_calls.py NAME N."""

import random
import sys


def yaml(n):
    import yaml

    text = "".join(f"- name: item {at}\n  tags: [a, b, {at}]\n  nested: {{x: {at}, y: [1, 2]}}\n" for at in range(n))
    return len(yaml.dump(yaml.load(text, yaml.SafeLoader)))


def lark(n):
    from lark import Lark

    grammar = """
        ?start: sum
        ?sum: product | sum "+" product | sum "-" product
        ?product: atom | product "*" atom
        ?atom: NUMBER | "-" atom | "(" sum ")"
        %import common.NUMBER
        %ignore " "
    """
    text = " + ".join(f"({at} * -({at} - 3)) * {at}" for at in range(n))
    return len(list(Lark(grammar, parser="lalr").parse(text).iter_subtrees()))


def mistune(n):
    import mistune

    part = "## Part {0}\n\nSome *words* and `code` with [a link](x{0}).\n\n- one\n- two **{0}**\n\n"
    return len(mistune.html("".join(map(part.format, range(n)))))


def sqlparse(n):
    import sqlparse

    columns = ", ".join(f"t.a{at} AS b{at}" for at in range(n))
    return len(
        sqlparse.format(f"select {columns} from t where t.a0 > 1 and (t.a1 = 2 or t.a2 in (1, 2))", reindent=True)
    )


def networkx(n):
    import networkx

    chance = random.Random(1)
    graph = networkx.Graph()
    graph.add_weighted_edges_from((chance.randrange(n), chance.randrange(n), chance.random()) for _ in range(4 * n))
    return sum(len(networkx.single_source_dijkstra_path_length(graph, at)) for at in range(10) if at in graph)


def hanoi(n):
    def move(height, source, target, spare):
        if height == 0:
            return 0
        return move(height - 1, source, spare, target) + 1 + move(height - 1, spare, target, source)

    return move(n, "a", "b", "c")


print({each.__name__: each for each in (yaml, lark, mistune, sqlparse, networkx, hanoi)}[sys.argv[1]](int(sys.argv[2])))
