"""`python -m deepreduce_tf COMMAND`: the tools of DeepReduce-TF."""

from __future__ import annotations

import argparse
import sys

from deepreduce_tf.inspect import command as inspect

COMMANDS = (inspect,)


def main() -> int:
    """Runs a command and returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m deepreduce_tf", description="Tools of DeepReduce-TF.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    arguments = parser.parse_args()
    if sys.stdout is None or sys.stderr is None:  # closed: `>&-`
        return 2
    try:
        arguments.run(arguments)
    except (ValueError, ImportError, OSError) as error:
        print(f"{arguments.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
