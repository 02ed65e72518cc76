"""The command ``compile``: compile now what the first use would compile."""

from typing import Any

from ._request import Request


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compile",
        help="compile what the first use would compile",
        description="Compile in advance the code that the first use would compile, "
        "for instance when an image is built.",
        examples=("sklearn-calib compile",),
    )
    parser.set_defaults(run=run_compile, modules=())


def run_compile(options: Request) -> None:
    """Compile the kernels."""
    from .._compile_kernels import compile_kernels

    compile_kernels()
