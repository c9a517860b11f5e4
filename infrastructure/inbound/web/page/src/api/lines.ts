// Responses of JSON lines, read while the server sends them.

import { readJson } from './json'
import { authorization, failureOf, readToken, RequestFailed, requestOf, type WriteOperation } from './requests'
import type { Answers, Bodies, Parameters } from './shapes'

const LINE_CHARS_MAX = 8_000_000

/** Send a request, and yield the values of each read. */
export async function* lines<Of extends WriteOperation>(
  operation: Of, parameters: Parameters[Of], body: Bodies[Of], signal: AbortSignal,
): AsyncGenerator<Answers[Of][]> {
  const { method, target } = requestOf(operation, parameters)
  const token = readToken()
  let response: Response
  try {
    response = await fetch(target, {
      method,
      headers: { Accept: 'application/x-ndjson', 'Content-Type': 'application/json', ...authorization(token) },
      body: JSON.stringify(body),
      signal,
      cache: 'no-store',
    })
  } catch (error) {
    throw failed(error, 'The server does not answer. Is it running?')
  }
  if (!response.ok || response.body === null) throw await failureOf(response, token)
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  const take = lineTaker()
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        throw failed(error, 'The connection to the server broke off.')
      })
      if (done) return
      const values = take(value) as Answers[Of][]
      if (values.length > 0) yield values
    }
  } finally {
    // A reader that stops frees the slot of the response at the server.
    void reader.cancel().catch(() => undefined)
  }
}

/** Parser of text in pieces, which returns the values of completed lines. */
export function lineTaker(): (piece: string) => unknown[] {
  let rest = ''
  return (piece) => {
    const whole = (rest + piece).split('\n')
    rest = whole.pop() ?? ''
    if (rest.length > LINE_CHARS_MAX) throw new RequestFailed(0, 'unknown', 'The server sent a line that is too long to be read here.')
    return whole.filter((line) => line !== '').map((line) => readJson(line))
  }
}

function failed(error: unknown, detail: string): unknown {
  if (error instanceof DOMException && error.name === 'AbortError') return error
  return new RequestFailed(0, 'unreachable', detail)
}
