"""``perflaw completion``: what a shell needs to complete verbs and options."""

from __future__ import annotations

import click


@click.command("completion", short_help="print what a shell needs to complete verbs and options")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print the completion of SHELL: bash, zsh or fish.

    \b
    eval "$(perflaw completion bash)"      in ~/.bashrc
    eval "$(perflaw completion zsh)"       in ~/.zshrc
    perflaw completion fish > ~/.config/fish/completions/perflaw.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    maker = kind(context.find_root().command, {}, "perflaw", "_PERFLAW_COMPLETE")
    click.echo(maker.source_template % maker.source_vars())
    return 0
