"""Programs of recorded_run.py, on packages of PyPI: recorded_run.py NAME N."""

import sys


def nothing(n):
    return n


def contexts(n):
    """N calls of eight functions that call each other, in some thirty thousand contexts."""
    source = "".join(
        f"def f{at}(depth):\n" + f"    return f{(at + 1) % 8}(depth - 1) + f{(at + 3) % 8}(depth - 1) if depth else 1\n"
        for at in range(8)
    )
    functions = {}
    exec(source, functions)
    rounds = n // (2**15 - 1)
    return sum(functions["f0"](14) for _ in range(rounds))


def sqlglot(n):
    import sqlglot
    from sqlglot.optimizer import optimize

    columns = ", ".join(f"t.a{at} + {at} AS b{at}" for at in range(n))
    rows = " AND ".join(f"(t.a{at} > {at} OR t.a{at} = 1)" for at in range(n))
    schema = {"t": {f"a{at}": "int" for at in range(n)}}
    return len(optimize(sqlglot.parse_one(f"SELECT {columns} FROM t WHERE {rows}"), schema=schema).sql())


def sympy(n):
    import sympy

    x, y = sympy.symbols("x y")
    expanded = sympy.expand((x + y + 1) ** n)
    return len(str(sympy.factor(expanded.diff(x))))


def mistune(n):
    import mistune

    part = "## Part {0}\n\nSome *words* and `code` with [a link](x{0}).\n\n- one\n- two **{0}**\n\n"
    return len(mistune.html("".join(map(part.format, range(n)))))


def sqlparse(n):
    import sqlparse

    columns = ", ".join(f"t.a{at} AS b{at}" for at in range(n))
    return len(sqlparse.format(f"select {columns} from t where t.a0 > 1 and t.a1 in (1, 2)", reindent=True))


def networkx(n):
    import networkx

    graph = networkx.gnm_random_graph(n, 4 * n, seed=1)
    return sum(networkx.betweenness_centrality(graph).values()) > 0


def lark(n):
    from lark import Lark

    grammar = """
        ?start: sum
        ?sum: product | sum "+" product
        ?product: atom | product "*" atom
        ?atom: NUMBER | "-" atom | "(" sum ")"
        %import common.NUMBER
        %ignore " "
    """
    text = " + ".join(f"({at} * -({at} + 3)) * {at}" for at in range(n))
    return len(list(Lark(grammar).parse(text).iter_subtrees()))


known = (nothing, contexts, sqlglot, sympy, mistune, sqlparse, networkx, lark)
print({each.__name__: each for each in known}[sys.argv[1]](int(sys.argv[2])))
