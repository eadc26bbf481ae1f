"""``perflaw mine``: how long each function takes on each call path."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import budget_options, cluster_option, experiment_option, json_option, refuse_store
from perflaw.cluster import on_cluster
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.mine.budget import BudgetOf


class _WithCommand(click.Command):
    """A command whose words after ``--`` are a program of their own, with options that are not ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the words after ``--`` aside."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta["perflaw.command"] = tuple(args[place + 1 :])
        return super().parse_args(ctx, args[:place])


@click.command("mine", cls=_WithCommand, short_help="learn how long each function takes on each call path")
@experiment_option
@click.option("--metric", default="time", show_default=True, type=click.Choice(["time", "cpu"]), help="Clock to use.")
@cluster_option
@json_option
@click.option("-o", "--output", metavar="FILE.html", help="Write specifications and call paths as a page.")
@click.option("--export", "export", type=click.Choice(("yaml", "evidence", "pytest", "prometheus", "otlp")),
              help="Print the specifications for review (yaml), with call paths (evidence), or for another tool.")  # fmt: skip
@click.option("--merge", is_flag=True, help="Mine each run (or read each FILE.yaml) and merge the results one by one.")
@click.option("--exact", is_flag=True, help="Distinguish every call path (A*), including rare ones.")
@click.option("--paper", is_flag=True, help="Use the paper's choices where ours differ.")
@click.option("--all", "every", is_flag=True, help="Also list functions whose calls all behave alike.")
@click.option("--attach", "pid", type=int, metavar="PID", help="Measure this running process first; Ctrl-C ends it.")
@budget_options
@click.option("--seconds", type=float, metavar="SECONDS", help="How long to measure the running program.")
@click.argument("arguments", nargs=-1, metavar="[COMPONENT]... [RUN]... [FILE.yaml]... [-- COMMAND [ARG]...]")
@click.pass_context
def command(
    context: click.Context,
    experiment: str,
    metric: str,
    cluster: str | None,
    as_json: bool,
    output: str | None,
    export: str | None,
    merge: bool,
    exact: bool,
    paper: bool,
    every: bool,
    pid: int | None,
    budget: str | None,
    budget_of: BudgetOf,
    seconds: float | None,
    arguments: tuple[str, ...],
) -> int:
    """Mine specifications from recordings made with ``perflaw record --collect paths``.

    With --attach PID, or with a COMMAND, a running program is measured first: perflaw decides by itself what to measure
    where, within a budget, and goes on until Ctrl-C, the end of the program or the SECONDS.

    For each function: the borders between quick and slow calls, the groups of call paths that behave alike, and the call
    edges that distinguish the groups. COMPONENT is the name of a function or the end of it.

    \b
    perflaw record --collect paths -- app.py && perflaw mine
    perflaw mine --export yaml > spec.yaml
    perflaw mine --attach 1234 --budget 2% --seconds 60
    """
    from perflaw.api.mining import MiningRequest, is_specification, merge_specs, mine_specs
    from perflaw.cli.mining import refine_text, specs_text
    from perflaw.learn.paths import MiningOptions

    program, status = context.meta["perflaw.command"], 0
    if pid is None and not program and (budget or seconds):
        option = "--budget" if budget else "--seconds"
        raise UsageError(f"{option} is for running programs", "nothing runs", f"perflaw mine --attach PID {option} …")
    if pid is not None and program:
        raise UsageError("--attach and a COMMAND", "one program is measured at a time", f"perflaw mine --attach {pid}")
    if seconds is not None and not 0 < seconds < math.inf:
        raise UsageError(f"--seconds {seconds:g}", "a number of seconds above 0 is expected", "--seconds 60")
    if pid is not None or program:
        refuse_store(context, "--attach" if program == () else "a COMMAND")
        from perflaw.cli.live_mining import mine_running, parse_share

        mined_now = mine_running(experiment, pid, program, parse_share(budget or "5%"), seconds, budget_of)
        status = mined_now.status if mined_now.status >= 0 else 128 - mined_now.status
        if not mined_now.functions:  # the program failed, and its status says why
            return status

    files = [word for word in arguments if is_specification(word)]
    runs = tuple(word for word in arguments if word.isdigit())
    names = tuple(word for word in arguments if word not in files and word not in runs)
    if files and not merge:
        why = "such files can only be merged"
        raise UsageError(f"{files[0]} is a file of specifications", why, f"perflaw mine --merge {' '.join(files)}")
    request = MiningRequest(experiment, metric, runs, names, MiningOptions(exact=exact, paper=paper), time.time_ns())
    with on_cluster(cluster):
        mined = merge_specs(request, files) if merge else mine_specs(request)
    if output:
        from perflaw.cli.pages import write_mine

        write_mine(output, experiment, mined)
    text = specs_text(mined, export, as_json, every or bool(names), experiment)
    if not export and not as_json:
        text += refine_text(mined, experiment)
    click.echo(text, nl=False)
    return status
