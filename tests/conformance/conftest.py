"""The example repository is run by a test of its own, as a repository of its own."""

collect_ignore = ["example_repo"]
