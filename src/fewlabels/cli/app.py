"""The command `fewlabels`: its list of commands, and the one place where errors become text."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from fewlabels import __version__
from fewlabels.cli import terminal
from fewlabels.cli.annotations import assess_annotations
from fewlabels.cli.benchmark import benchmark
from fewlabels.cli.calibrate import calibrate
from fewlabels.cli.compare import compare
from fewlabels.cli.completion import completed
from fewlabels.cli.curve import curve
from fewlabels.cli.demo import demo
from fewlabels.cli.doctor import doctor
from fewlabels.cli.estimate import estimate
from fewlabels.cli.help import Commands
from fewlabels.cli.label_next import label_next
from fewlabels.cli.shift import shift
from fewlabels.cli.spelling import in_options
from fewlabels.cli.terminal import print_warnings
from fewlabels.cli.threshold import threshold
from fewlabels.errors import FewlabelsError, one_line
from fewlabels.kernels.notices import hearing

EXIT_BAD_INPUT = 2
# Outside 0, 1 and 2, which scripts read as: fine, a requirement is not met, bad input.
EXIT_BUG = 70
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


@click.group(
    cls=Commands,
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


# Command modules import nothing but click before they run, so listing them here costs nothing.
for _command in (
    assess_annotations,
    benchmark,
    calibrate,
    compare,
    curve,
    demo,
    doctor,
    estimate,
    label_next,
    shift,
    threshold,
):
    app.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        What follows the program's name; `sys.argv[1:]` unless given.
    """
    _never_fail_to_print()
    answered = completed(app)
    if answered is not None:
        return answered
    context: click.Context | None = None
    try:
        # Not `app.main`: it turns a reader that has gone away into exit code 1, which here says
        # that a requirement is not met.
        given = sys.argv[1:] if arguments is None else list(arguments)
        context = app.make_context("fewlabels", given)
        with context, terminal.colours(context), hearing(_say_before):
            code = app.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except FewlabelsError as error:
        name = None if context is None else context.invoked_subcommand
        return _fail(in_options(str(error), app.commands.get(name or "")))
    except click.ClickException as error:
        return _fail(_click_message(error))
    except MemoryError as error:
        detail = f" ({error})" if str(error) else ""
        return _fail(f"not enough memory{detail}; estimate fewer classifiers, groups or items")
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; without this the interpreter complains again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except OSError as error:
        return _fail(f"cannot read or write: {error}")
    except Exception:
        # A bug of ours, not bad input: whoever reports it needs the traceback.
        traceback.print_exc()
        return EXIT_BUG
    return code if isinstance(code, int) else 0


def _say_before(line: str) -> None:
    print_warnings([line])


def _click_message(error: click.ClickException) -> str:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    return f"{message.rstrip('.')} (see `{context.command_path} --help`)"


def _fail(message: str) -> int:
    with contextlib.suppress(OSError):  # nobody to tell; the exit code still says it
        word = click.style("error:", fg="red") if terminal.has_colours(sys.stderr) else "error:"
        click.echo(f"{word} {one_line(message)}", err=True, color=True)
    return EXIT_BAD_INPUT


def _never_fail_to_print() -> None:
    """Escape what the terminal's encoding lacks, instead of failing after the work is done."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
