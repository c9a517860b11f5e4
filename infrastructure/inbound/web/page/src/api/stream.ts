// Live stream of the log's events. One tab reads it for all tabs of a browser: browsers open six
// connections to a host, and a stream occupies one of them.

import { createParser } from 'eventsource-parser'

import { authorization, failureOf, readToken, requestOf } from './requests'

export interface Recorded {
  position: number
  recordedAt: string | null
  log: string
}

export type StreamState = 'connecting' | 'open' | 'lost'

interface StreamMessage {
  recorded?: Recorded
  state?: StreamState
}

const LOCK = 'spawnlog.stream'
const CHANNEL = 'spawnlog.stream'
const POST_EVERY_MS = 50
const RETRY_FIRST_MS = 250
const RETRY_MAX_MS = 5_000
const SILENCE_MAX_MS = 45_000

/** Follow the log from `head()` on (0: from now on), in this tab or through the tab that reads the stream.
 * Return a function that stops. `runId` is the only run that a child's token may follow. */
export function followLog(
  head: () => number,
  runId: string | null,
  onRecorded: (recorded: Recorded) => void,
  onState: (state: StreamState) => void,
): () => void {
  const ending = new AbortController()
  const channel = new BroadcastChannel(CHANNEL)
  const take = (message: StreamMessage): void => {
    if (message.recorded) onRecorded(message.recorded)
    if (message.state) onState(message.state)
  }
  channel.onmessage = (event: MessageEvent<StreamMessage>) => take(event.data)
  const tell = (message: StreamMessage): void => {
    take(message)
    channel.postMessage(message)
  }
  const follow = (): Promise<void> => readStream(head, runId, tell, ending.signal)
  // Browsers have no locks on insecure connections: then each tab reads its own stream.
  const locks = navigator.locks as LockManager | undefined
  if (locks === undefined) void readStream(head, runId, take, ending.signal)
  else void locks.request(LOCK, { signal: ending.signal }, follow).catch(() => undefined)
  return () => {
    ending.abort()
    channel.close()
  }
}

async function readStream(
  head: () => number,
  runId: string | null,
  tell: (message: StreamMessage) => void,
  ending: AbortSignal,
): Promise<void> {
  let delay = RETRY_FIRST_MS
  while (!ending.aborted) {
    try {
      await readOnce(head(), runId, tell, ending, () => (delay = RETRY_FIRST_MS))
    } catch {
      // After any failure the shown state stays, and the stream is resumed from its position.
    }
    if (ending.aborted) return
    tell({ state: 'lost' })
    await pause(delay, ending)
    delay = Math.min(delay * 2, RETRY_MAX_MS)
  }
}

async function readOnce(
  after: number,
  runId: string | null,
  tell: (message: StreamMessage) => void,
  ending: AbortSignal,
  onOpen: () => void,
): Promise<void> {
  const silence = new AbortController()
  const stop = (): void => silence.abort()
  ending.addEventListener('abort', stop)
  let watch = setTimeout(stop, SILENCE_MAX_MS)
  let timer: ReturnType<typeof setTimeout> | undefined
  let newest: Recorded | undefined
  let toldAt = 0
  const flush = (): void => {
    timer = undefined
    toldAt = performance.now()
    if (newest) tell({ recorded: newest })
  }
  try {
    const token = readToken()
    const { target } = requestOf('listEvents', { after: after || null, runId })
    const response = await fetch(target, {
      headers: { Accept: 'text/event-stream', ...authorization(token) },
      signal: silence.signal,
      cache: 'no-store',
    })
    if (!response.ok || response.body === null) throw await failureOf(response, token)
    const log = response.headers.get('Spawnlog-Log') ?? ''
    onOpen()
    const position = Number(response.headers.get('Spawnlog-Position') ?? 0)
    tell({ state: 'open', recorded: { position, recordedAt: response.headers.get('Spawnlog-Recorded-At'), log } })
    const parser = createParser({
      onEvent: (event) => {
        if (event.id === undefined) return
        newest = { position: Number(event.id), recordedAt: recordedAtOf(event.data), log }
        timer ??= setTimeout(flush, Math.max(0, toldAt + POST_EVERY_MS - performance.now()))
      },
    })
    const texts = response.body.pipeThrough(new TextDecoderStream()).getReader()
    for (;;) {
      const { done, value } = await texts.read()
      if (done) break
      clearTimeout(watch)
      watch = setTimeout(stop, SILENCE_MAX_MS)
      parser.feed(value)
    }
  } finally {
    clearTimeout(watch)
    if (timer !== undefined) {
      clearTimeout(timer)
      flush()
    }
    ending.removeEventListener('abort', stop)
  }
}

function recordedAtOf(data: string): string | null {
  try {
    const event = JSON.parse(data) as { recordedAt?: string }
    return event.recordedAt ?? null
  } catch {
    return null
  }
}

function pause(milliseconds: number, ending: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds)
    ending.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })
}
