"""Policies side by side: trials until a configuration within 5 % of the best was tried; median and p90 over seeds.

Made-up systems (multiplicative laws, pairs, cliffs, scalability collapse, invalid regions, noise of 1 to 20 %, and one without
structure), or a measured grid: ``--grid FILE``, CSV with a row a trial: columns of knobs, then ``value`` and ``repetition``. A
trial replays one repetition; regret is against the mean over repetitions of each configuration.
Usage: explore_policies.py [--seeds 20] [--trials 60] [--policies law,optuna] [--systems a,b] [--grid FILE] [--goal max]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from explore_systems import SYSTEMS, System, grid_system

from perflaw.explore.policy import find_policy
from perflaw.explore.space import Space
from perflaw.types.studies import Budget, Study, StudyMetric, Target, Trial

WITHIN = 0.05


def study_of(system: System, trials: int, options: dict[str, object]) -> Study:
    metric = StudyMetric("value", {"path": "value"}, goal=system.goal)
    return Study(
        "benchmark", Target(), system.knobs, (metric,), system.constraints, budget=Budget(trials), options=options
    )


def explore(system: System, name: str, seed: int, trials: int) -> tuple[int, float, str]:
    """Trials until the mark is met (trials + 1: never), CPU seconds a proposal, the last reason."""
    name, _, sampler = name.partition("/")
    study = study_of(system, trials, {"sampler": sampler} if sampler else {})
    policy = find_policy(name, Path(__file__).parent)(Space(system.knobs, system.constraints), study, seed)
    history: list[Trial] = []
    spent, why = 0.0, ""
    while len(history) < trials:
        start = time.process_time()
        proposal = policy.propose(history)
        spent += time.process_time() - start
        if proposal is None:
            break
        history.append(system.trial(len(history) + 1, proposal.configuration, seed))
        why = proposal.why
        if system.regret(proposal.configuration) <= WITHIN:
            return len(history), spent / len(history), why
    return trials + 1, spent / max(1, len(history)), why


def report(system: System, names: list[str], seeds: int, trials: int) -> None:
    for name in names:
        runs = [explore(system, name, seed, trials) for seed in range(seeds)]
        needed = np.array([run[0] for run in runs])
        median, high = np.quantile(needed, [0.5, 0.9], method="higher")
        shown = [f"{int(number)}" if number <= trials else f"> {trials}" for number in (median, high, needed.max())]
        cpu = max(run[1] for run in runs)
        print(
            f"{system.name:14} {name[-14:]:14} {shown[0]:>6} {shown[1]:>6} {shown[2]:>6} {1000 * cpu:>10.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--policies", default="law,optuna,explore_peers.py:GP,random,sobol")
    parser.add_argument("--systems", default="")
    parser.add_argument("--grid")
    parser.add_argument("--goal", default="max")
    asked = parser.parse_args()
    systems = [grid_system(asked.grid, asked.goal)] if asked.grid else [made() for made in SYSTEMS.values()]
    print(f"{'system':14} {'policy':14} {'median':>6} {'p90':>6} {'most':>6} {'ms/proposal':>10}")
    for system in systems:
        if not asked.systems or system.name in asked.systems.split(","):
            report(system, asked.policies.split(","), asked.seeds, asked.trials)


if __name__ == "__main__":
    main()
