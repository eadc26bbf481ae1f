"""The margin: claimed only where it is true, in made-up studies whose best is known; not claimed without structure early on."""

import numpy as np
import pytest

from perflaw.explore.policies.law import SURE, margin_reached
from perflaw.explore.space import Space
from perflaw.types.studies import Knob, StudyMetric, Trial

OBJECTIVE = StudyMetric("rate", {}, goal="max")
KNOBS = tuple(Knob(name, "ordinal", tuple(range(size))) for name, size in (("a", 4), ("b", 4), ("c", 3)))
SPACE = Space(KNOBS)


def law_of(rng, rough=0.0):
    """Log-additive curves with one pair, and a share of pure chance."""
    a, b, c = rng.normal(0, 0.3, 4), rng.normal(0, 0.3, 4), rng.normal(0, 0.2, 3)
    pair, chance = rng.normal(0, 0.2, (4, 4)), rng.normal(0, rough, (4, 4, 3)) if rough else np.zeros((4, 4, 3))
    return lambda x: float(
        np.exp(a[x["a"]] + b[x["b"]] + c[x["c"]] + pair[x["a"], x["b"]] + chance[x["a"], x["b"], x["c"]])
    )


def tried(law, order, rng, noise=0.02):
    return [
        Trial(number, one, {"rate": law(one) * float(np.exp(rng.normal(0, noise)))}, valid=True)
        for number, one in enumerate(order, 1)
    ]


@pytest.mark.slow
def test_what_is_claimed_is_true():
    """Random trials, asked at several times: where 95 % is claimed, nothing untried is better by more than 5 %."""
    claims, right = 0, 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        law, order = law_of(rng), [SPACE.all()[i] for i in rng.permutation(48)]
        for number in (20, 32):
            history = tried(law, order[:number], np.random.default_rng(seed))
            reached, _, _ = margin_reached(history, SPACE, 0.05, OBJECTIVE)
            best = max(law(one) for one in order[:number])
            claims += reached
            right += reached and all(law(one) <= 1.05 * best for one in order[number:])
    assert claims >= 3
    assert right >= claims - 1


def test_nothing_is_claimed_early_or_without_structure():
    rng = np.random.default_rng(3)
    law, order = law_of(rng, rough=0.5), [SPACE.all()[i] for i in rng.permutation(48)]
    assert margin_reached(tried(law, order[:6], rng), SPACE, 0.05, OBJECTIVE)[:2] == (False, 0.0)
    reached, probability, words = margin_reached(tried(law, order[:16], rng), SPACE, 0.05, OBJECTIVE)
    assert not reached and 0 < probability < SURE
    assert "better by more than 5 %, with probability" in words


def test_ends_of_the_question():
    law = law_of(np.random.default_rng(4))
    everything = tried(law, SPACE.all(), np.random.default_rng(4))
    assert margin_reached(everything, SPACE, 0.05, OBJECTIVE) == (True, 1.0, "every configuration was tried")
    assert margin_reached([Trial(1, SPACE.defaults(), reason="refused")], SPACE, 0.05, OBJECTIVE)[0] is False


@pytest.mark.parametrize("goal", ["max", "min"])
def test_a_clear_winner_is_known_in_a_space_too_large_to_list(goal):
    knobs = (Knob("x", "float", low=0.0, high=1.0), Knob("y", "float", low=0.0, high=1.0))
    space = Space(knobs)
    rng = np.random.default_rng(5)
    sign = 1 if goal == "max" else -1
    points = [{"x": 0.5, "y": 0.5}, *(space.sample(rng) for _ in range(24))]
    history = [
        Trial(i, p, {"rate": float(np.exp(-sign * 3 * ((p["x"] - 0.5) ** 2 + (p["y"] - 0.5) ** 2)))}, valid=True)
        for i, p in enumerate(points, 1)
    ]
    reached, probability, words = margin_reached(history, space, 0.1, StudyMetric("rate", {}, goal=goal))
    assert reached and probability >= SURE and "sampled" in words
