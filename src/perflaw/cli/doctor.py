"""``perflaw doctor``: what this machine can measure, and why not."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from perflaw.cli.options import json_option, print_document


@click.command("doctor", short_help="say what this machine can measure, and why not")
@json_option
def command(as_json: bool) -> int:
    """Say which tracer records here and why, how fine the clock is, and what cannot be measured.

    \b
    perflaw doctor
    perflaw doctor --json
    """
    from perflaw.record.doctor import examine

    findings = examine()
    if as_json:
        print_document({"schema": "perflaw.doctor/1", "findings": [asdict(finding) for finding in findings]})
        return 0
    from perflaw.report.tables import text_table

    rows = [["yes" if finding.ok else "no", finding.what, finding.detail] for finding in findings]
    click.echo(text_table(["can", "what", "how, or why not"], rows, right=(), colour=sys.stdout.isatty()), nl=False)
    return 0
