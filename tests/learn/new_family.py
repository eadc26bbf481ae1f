"""A program that adds one entry to the catalogue of families and prints where the new family is met, as JSON."""

import json

import numpy as np

from perflaw.laws import catalogue

NEW = catalogue.Family(
    "n52", "n^2.5", catalogue.Shape(2.5), smooth=0.0, piece=True, factor=0.5, snap=0.0, blend=True, paper=True
)
catalogue.FAMILIES = (*catalogue.FAMILIES, NEW)

from perflaw.laws.printing import show  # noqa: E402  # after the entry was added
from perflaw.learn.annotations.paper import learn_paper  # noqa: E402
from perflaw.learn.series import Series, learn  # noqa: E402
from perflaw.report.law_words import grows_as  # noqa: E402


def main() -> None:
    """Learn laws in which the family stands alone, in a piece, as a factor, as a snapped exponent, and in a regression."""
    noise = np.random.default_rng(1)
    x = np.geomspace(4, 4000, 60)
    jitter = np.exp(noise.normal(0, 0.01, x.size))
    u, v = np.exp(noise.uniform(1, 6, (2, 200)))
    jitters = np.exp(noise.normal(0, 0.01, 200))
    series = [
        Series("smooth", 3 * x**2.5 * jitter, {"n": x}),
        Series("piece", np.where(x < 100, 5000.0, 40 + 0.01 * x**2.5) * jitter, {"n": x}),
        Series("factor", (7 * u + 0.5 * v**2.5) * jitters, {"u": u, "v": v}),
        Series("snap", 3 * u**2.5 * v * jitters, {"u": u, "v": v}),
    ]
    smooth, piece, factor, snap = (one.law for one in learn(series))
    (paper,) = (one.law for one in learn_paper([series[0]], 0.9))
    met = {
        "smooth": [smooth.family, grows_as(smooth), show(smooth.mean)],
        "piece": [one.family for one in piece.segments],
        "factor": show(factor.mean),
        "snap": show(snap.mean),
        "paper": paper.family,
    }
    print(json.dumps(met))


if __name__ == "__main__":
    main()
