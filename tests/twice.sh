#!/usr/bin/env bash
# Run pytest, and what failed once more: real servers and sockets on a busy machine can be late for a deadline of a
# test. A fault fails both times, and both outputs stay above each other to be read.
#
#   bash tests/twice.sh PYTHON [pytest arguments]
set -uo pipefail
python=$1
shift
"$python" -m pytest "$@" && exit 0
echo "twice.sh: some tests failed; those are run once more" >&2
exec "$python" -m pytest --last-failed --last-failed-no-failures none --maxfail 10 "$@"
