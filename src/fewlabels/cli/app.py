"""The command `fewlabels`: its list of commands, and the one place where errors become text."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

import click

from fewlabels import __version__
from fewlabels.cli import interrupts
from fewlabels.cli.annotations import assess_annotations
from fewlabels.cli.estimate import compare, estimate, score
from fewlabels.cli.label import label
from fewlabels.cli.look import convert, doctor, methods
from fewlabels.cli.monitor import monitor
from fewlabels.cli.one_classifier import curve, label_next, threshold
from fewlabels.cli.options import in_options
from fewlabels.cli.output import TYPED, has_colours, print_warnings
from fewlabels.cli.rank import rank
from fewlabels.cli.reliability import calibration
from fewlabels.cli.repair import calibrate, shift
from fewlabels.cli.trial import backtest, demo
from fewlabels.errors import FewlabelsError, listed, one_line, unknown
from fewlabels.kernels.notices import hearing
from fewlabels.report.words import styled

EXIT_BAD_INPUT = 2
# Outside 0, 1 and 2, which scripts read as: fine, a requirement is not met, bad input.
EXIT_BUG = 70
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

COMPLETE = "_FEWLABELS_COMPLETE"
"""Set by a shell's completion script to its request: the script itself, or completions."""

# Command modules import nothing but click before they run, so listing them here costs nothing.
COMMANDS = {
    "Look at a file": (doctor, convert),
    "How good are the classifiers": (estimate, compare, calibration, assess_annotations),
    "How good is the system that judges evaluate": (score, rank),
    "Is it still as good": (monitor,),
    "Decide": (curve, threshold),
    "Label": (label, label_next),
    "Repair": (shift, calibrate),
    "Try": (demo, backtest, methods),
}
"""Commands by task, in the usual order of use."""


class Commands(click.Group):
    """The commands by task; a name that is misspelt is answered with the nearest one."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section per task."""
        longest = max(map(len, self.commands))
        room = formatter.width - 6 - longest
        for task, commands in COMMANDS.items():
            with formatter.section(task):
                formatter.write_dl(
                    [(str(c.name).ljust(longest), c.get_short_help_str(room)) for c in commands]
                )

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error names the nearest one."""
        name = args[0] if args else "-"
        misspelt = not name.startswith("-") and self.get_command(context, name) is None
        if misspelt and not context.resilient_parsing:
            context.fail(unknown("command", name, self.commands))
        return super().resolve_command(context, args)


@click.group(
    cls=Commands,
    commands=[command for commands in COMMANDS.values() for command in commands],
    help="How good is each classifier, when few labels are known?",
    epilog="Exit codes: 0 fine, 1 a --require or --probability is not met, 2 bad input or usage.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="fewlabels", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Show the help where no command is given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    `arguments` are what follows the program's name; None: `sys.argv[1:]`.
    """
    # Escape what the terminal's encoding lacks, instead of failing after the work is done.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    if arguments is None and not sys.warnoptions:
        # Numerical warnings of libraries do not help the user of a command, here and in the
        # processes that it starts. Where Python is asked for warnings, and in tests, they stay.
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        os.environ.setdefault("PYTHONWARNINGS", "ignore::RuntimeWarning")
    instruction = os.environ.get(COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(app, {}, "fewlabels", COMPLETE, instruction)
    context: click.Context | None = None
    try:
        # Not `app.main`: it turns a closed pipe into exit code 1, which here says that a
        # requirement is not met.
        typed = sys.argv[1:] if arguments is None else list(arguments)
        context = app.make_context("fewlabels", list(typed))
        context.meta[TYPED] = typed
        listening = hearing(lambda line: print_warnings([line]))
        # In a process that goes on, such as a notebook's, signals are not ours.
        hearing_signals = interrupts.heard() if arguments is None else contextlib.nullcontext()
        if has_colours(sys.stdout):  # of texts that are made from here on
            context.color = True
            context.with_resource(styled())
        with hearing_signals, context, listening:
            code = app.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except FewlabelsError as error:
        name = None if context is None else context.invoked_subcommand
        return _fail(in_options(str(error), app.commands.get(name or "")))
    except click.ClickException as error:
        message, where = error.format_message(), getattr(error, "ctx", None)
        if isinstance(error, click.NoSuchOption) and (owners := _owners(error.option_name)):
            message = f"No such option '{error.option_name}': it belongs to {listed(owners, 4)}"
        if where is not None:
            message = f"{message.rstrip('.')} (see `{where.command_path} --help`)"
        return _fail(message)
    except MemoryError as error:
        detail = f" ({error})" if str(error) else ""
        return _fail(f"not enough memory{detail}; estimate fewer classifiers, groups or items")
    except interrupts.Stopped as stop:
        interrupts.say(stop.number)
        return stop.code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The pipe is closed; without this the interpreter reports it again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except OSError as error:
        return _fail(f"cannot read or write: {error}")
    except Exception:
        # A bug of ours, not bad input: a report needs the traceback.
        traceback.print_exc()
        return EXIT_BUG
    return code if isinstance(code, int) else 0


def _owners(flag: str) -> list[str]:
    """The commands that have an option."""
    every = {n: c.get_params(click.Context(c)) for n, c in app.commands.items()}
    return [
        f"`fewlabels {n}`" for n, params in every.items() if any(flag in p.opts for p in params)
    ]


def _fail(message: str) -> int:
    with contextlib.suppress(OSError):  # there is no reader; the exit code still tells
        word = click.style("error:", fg="red") if has_colours(sys.stderr) else "error:"
        click.echo(f"{word} {one_line(message)}", err=True, color=True)
    return EXIT_BAD_INPUT
