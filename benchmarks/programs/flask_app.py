"""A Flask application answers requests of its own test client: flask_app.py REQUESTS."""

import sys

from flask import Flask, jsonify, render_template_string, request, url_for

PAGE = """<h1>{{ title | title }}</h1>
<ul>{% for item in items if item.price > 3 %}
<li class="{{ loop.cycle('odd', 'even') }}"><a href="{{ url_for('item', number=item.number) }}">{{ item.name }}</a>
{{ '%.2f' % item.price }}</li>{% endfor %}</ul>"""

app = Flask(__name__)


@app.route("/items")
def items():
    count = int(request.args["count"])
    shown = [{"number": n, "name": f"item <{n}>", "price": n % 7} for n in range(count)]
    return render_template_string(PAGE, title="a list of items", items=shown)


@app.route("/items/<int:number>")
def item(number):
    return jsonify(number=number, next=url_for("item", number=number + 1))


def main(requests):
    client = app.test_client()
    size = 0
    for n in range(requests):
        size += len(client.get(f"/items?count={n % 20}").data) + len(client.get(f"/items/{n}").data)
    print(size)


main(int(sys.argv[1]))
