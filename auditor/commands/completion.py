"""``zaudit completion``: what a shell needs to complete the words of a command line, and the answers to it."""

from __future__ import annotations

import click

from auditor import data
from auditor.screen import say
from auditor.text import harmless

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.argument("words", nargs=-1, metavar="")
@click.option(
    "--answer", is_flag=True, hidden=True, help="Complete the last of the words, which are those after zaudit."
)
@click.pass_context
def completion(context: click.Context, shell: str, words: tuple[str, ...], answer: bool) -> None:
    """Print the script that makes a shell complete commands, options, rules, formats, datasets and recordings.

    bash: eval "$(zaudit completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: zaudit completion fish >
    ~/.config/fish/completions/zaudit.fish. The Debian package and the RPM have installed it already.
    """
    if not answer:
        say(data.text(f"completion.{shell}").rstrip("\n"))
        return
    from click.shell_completion import ShellComplete

    *before, incomplete = words or ("",)
    found = ShellComplete(context.find_root().command, {}, "zaudit", "").get_completions(before, incomplete)
    for each in found:
        click.echo("\t".join(harmless(str(word)) for word in (each.type, each.value, each.help or "")))


COMMAND = completion
