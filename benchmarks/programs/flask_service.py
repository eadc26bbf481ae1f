"""A Flask application with a handler that is linear in the number that its path names."""

from flask import Flask

application = Flask(__name__)


@application.get("/total/<int:n>")
def total(n: int) -> str:
    found = 0
    for number in range(n):
        found += number & 7
    return str(found)
