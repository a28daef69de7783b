"""The one error that a set-up fault raises: what is wrong, where it was found, what to do."""


class SetupError(ValueError):
    """A fault of the installation, the model directory or the command line; never of the model's output.

    Args:
        problem: what is wrong, in one sentence without a full stop.
        found: where it was found (a tokenizer, a file, a flag).
        remedy: the command or the change that mends it.
    """

    def __init__(self, problem: str, found: str, remedy: str) -> None:
        self.problem, self.found, self.remedy = problem, found, remedy
        super().__init__(f"{problem} (found in: {found}). Remedy: {remedy}")
