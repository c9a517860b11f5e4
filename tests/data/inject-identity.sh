#!/usr/bin/env bash
# inject-identity.sh — resolve agent identity for spawning

AGENT_ID=""
for arg in "$@"; do
  case "$arg" in
    targetAgentId=*) AGENT_ID="${arg#targetAgentId=}" ;;
  esac
done

# Check if this is a registered agent or an alias
if is_registered "$AGENT_ID"; then
  MESSAGE=$(cat "agents/$AGENT_ID/SOUL.md")
  echo "{\"message\": $(echo "$MESSAGE" | jq -Rs .), \"targetAgentId\": \"$AGENT_ID\"}"
elif is_alias "$AGENT_ID"; then
  PARENT=$(resolve_parent "$AGENT_ID")
  CHARTER=$(cat "agents/$AGENT_ID/charter.md")
  echo "{\"message\": $(echo "$CHARTER" | jq -Rs .), \"targetAgentId\": \"$PARENT\"}"
else
  # Unknown agent — no-op (empty output)
  exit 0
fi
