"""`python -m vllm_reasoning_ext`: the command line."""

import sys

from vllm_reasoning_ext.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
