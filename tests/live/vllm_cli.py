"""What `vllm serve` runs, which alone can start several front ends; the command is missing beside the CPU build.

(Its other subcommands import GPU modules, which crash on a CPU, so the command as a whole cannot be used here.)
"""

if __name__ == "__main__":
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    arguments = make_arg_parser(FlexibleArgumentParser()).parse_args()
    ServeSubcommand.cmd(arguments)
