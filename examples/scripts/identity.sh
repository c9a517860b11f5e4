#!/bin/sh
# A context script: says who the agent of a spawn is, before the spawn is made.
#
# Called as: identity.sh targetAgentId=<the requested agent>
#
# identities/<agent>/SOUL.md      the agent is configured: its text is put before the task
# identities/<agent>/charter.md   the agent is an alias: its charter is put before the task, and
# identities/<agent>/parent       names the configured agent that runs for it
#
# An agent with neither gets nothing: an empty output is no error.

agent=
for argument in "$@"; do
    case "$argument" in
        targetAgentId=*) agent=${argument#targetAgentId=} ;;
    esac
done

# The id becomes part of a path.
case "$agent" in
    '' | *[!a-z0-9_-]*) exit 0 ;;
esac

folder=$(dirname "$0")/../identities/$agent
if [ -f "$folder/SOUL.md" ]; then
    text=$folder/SOUL.md
    runs_as=$agent
elif [ -f "$folder/charter.md" ] && [ -f "$folder/parent" ]; then
    text=$folder/charter.md
    read -r runs_as <"$folder/parent"
else
    exit 0
fi

# A text in JSON needs every quote and line end of it escaped: not a task for echo.
exec python3 -c '
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    print(json.dumps({"message": file.read().strip(), "targetAgentId": sys.argv[2]}))
' "$text" "$runs_as"
