// The line of an error text that names its cause, as the server groups failures by it.

const TRACEBACK = 'Traceback (most recent call last):'

/**
 * Return the last line of an error that is not blank. In a Python traceback it is the line of the
 * exception, which further lines of its message may follow.
 */
export function errorLine(text: string): string {
  const begin = text.lastIndexOf(TRACEBACK)
  const tail = begin === -1 ? text : text.slice(begin + TRACEBACK.length)
  const lines = tail.split(/\r?\n/).map((line) => line.trimEnd()).filter((line) => line.trim() !== '')
  const exception = begin === -1 ? undefined : lines.find((line) => !/^[ \t]/.test(line))
  return (exception ?? lines.at(-1) ?? '').split(/\s+/).filter(Boolean).join(' ')
}
