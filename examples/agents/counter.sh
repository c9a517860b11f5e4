#!/bin/sh
# Counts. Its prompt comes as text on stdin: the system prompt, a blank line, the message.
#
#   Count the words of data/harbour.txt      counts a file of the folder it is started in
#   anything else                            counts the prompt it was given

prompt=$(cat)
file=$(printf '%s\n' "$prompt" |
    sed -n 's|^Count .* of \([A-Za-z0-9_][A-Za-z0-9._/-]*[A-Za-z0-9]\)\.\{0,1\}$|\1|p' | tail -n 1)

if [ -z "$file" ]; then
    printf '%s\n' "$prompt" | wc |
        { read -r lines words bytes; echo "my prompt: $lines lines, $words words, $bytes bytes"; }
    exit 0
fi

# The task is somebody else's text: it may name a file of this folder and nothing outside it.
case "/$file/" in
    */../*)
        echo "$file: only files of this folder are counted" >&2
        exit 2
        ;;
esac
if [ ! -f "$file" ]; then
    echo "$file: there is no such file" >&2
    exit 1
fi
wc <"$file" | { read -r lines words bytes; echo "$file: $lines lines, $words words, $bytes bytes"; }
