"""sqlglot parses, optimizes and writes queries: sqlglot_app.py QUERIES."""

import sys

import sqlglot
from sqlglot.optimizer import optimize

QUERY = """
SELECT c.name, SUM(o.price * (1 - o.discount)) AS revenue, COUNT(*) AS orders{n}
FROM customers AS c JOIN orders AS o ON c.id = o.customer LEFT JOIN nations AS n ON c.nation = n.id
WHERE o.day >= DATE '1995-01-01' AND n.name IN ('FRANCE', 'PERU') AND c.segment = 'BUILDING' OR c.id = {n}
GROUP BY c.name HAVING SUM(o.price) > {n} ORDER BY revenue DESC LIMIT 10
"""
SCHEMA = {
    "customers": {"id": "INT", "name": "TEXT", "nation": "INT", "segment": "TEXT"},
    "orders": {"customer": "INT", "price": "DOUBLE", "discount": "DOUBLE", "day": "DATE"},
    "nations": {"id": "INT", "name": "TEXT"},
}


def main(queries):
    size = 0
    for n in range(queries):
        tree = sqlglot.parse_one(QUERY.format(n=n))
        size += len(optimize(tree, schema=SCHEMA).sql(dialect="duckdb", pretty=True))
    print(size)


main(int(sys.argv[1]))
