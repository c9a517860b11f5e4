// Requests to the HTTP API of the server that the page came from.

import type { Problem } from './shapes'

export type Parameters = Record<string, string | number | boolean | string[] | null | undefined>

/** A response: the body, and as of which position of which log it is true. */
export interface Answer<T> {
  body: T
  log: string
  position: number
  recordedAt: string | null
  etag: string | null
}

/** The server refused, or did not answer (`status` 0). `message` says what to do next. */
export class RequestFailed extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly problem: Partial<Problem> = {},
    readonly retryAfterMs: number | null = null,
    /** Of which log the server is; empty when nobody said so. */
    readonly log = '',
  ) {
    super(detail)
    this.name = 'RequestFailed'
  }

  /** The server, or the way to it, is away for a while. */
  get isOutage(): boolean {
    return this.status === 0 || this.status === 503
  }
}

const TOKEN_KEY = 'spawnlog.token'

export function readToken(): string | null {
  return localStorage.getItem(TOKEN_KEY)
}

/** Keeps the token for all tabs of this browser; null signs all of them out. */
export function writeToken(token: string | null): void {
  if (token === null) localStorage.removeItem(TOKEN_KEY)
  else localStorage.setItem(TOKEN_KEY, token)
}

/** Calls `then` when another tab has signed in or out. */
export function onTokenChange(then: () => void): void {
  addEventListener('storage', (event) => {
    if (event.key === TOKEN_KEY || event.key === null) then()
  })
}

const PAGE_TOKEN = 'slp_'

/** Tells the server that nobody uses the token of this browser any more, if it was made for the page. */
export async function revokeToken(): Promise<void> {
  if (!readToken()?.startsWith(PAGE_TOKEN)) return
  try {
    await fetch('/v1/page-tokens/current', { method: 'DELETE', headers: authorization(), keepalive: true })
  } catch {
    // Nobody hears it: the token ends by itself.
  }
}

export function targetOf(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null || value === undefined || value === '') continue
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, String(one))
  }
  const text = query.toString()
  return text ? `${path}?${text}` : path
}

export function authorization(): Record<string, string> {
  const token = readToken()
  return token === null ? {} : { Authorization: `Bearer ${token}` }
}

const ANSWERS_KEPT_MAX = 200
const kept = new Map<string, Answer<unknown>>()

/** Forgets what was read, for another token or another log. */
export function forgetAnswers(): void {
  kept.clear()
}

/**
 * Reads. With `isForever` the response never changes (it is as of a position that the log has
 * passed): the last 200 of those are kept.
 */
export async function read<T>(
  path: string,
  parameters: Parameters = {},
  options: { signal?: AbortSignal; isForever?: boolean } = {},
): Promise<Answer<T>> {
  const target = targetOf(path, parameters)
  const known = kept.get(target)
  if (known !== undefined) {
    kept.delete(target)
    kept.set(target, known)
    return known as Answer<T>
  }
  const answer = await send<T>('GET', target, undefined, options.signal)
  if (options.isForever) {
    kept.set(target, answer)
    const oldest = kept.keys().next()
    if (kept.size > ANSWERS_KEPT_MAX && !oldest.done) kept.delete(oldest.value)
  }
  return answer
}

/** Asks for something to be done, once however often it is sent. */
export async function act<T>(method: string, path: string, body: unknown): Promise<Answer<T>> {
  return send<T>(method, path, body, undefined, { 'Idempotency-Key': crypto.randomUUID() })
}

async function send<T>(
  method: string,
  target: string,
  body?: unknown,
  signal?: AbortSignal,
  headers: Record<string, string> = {},
): Promise<Answer<T>> {
  const sent: Record<string, string> = { Accept: 'application/json', ...authorization(), ...headers }
  if (body !== undefined) sent['Content-Type'] = 'application/json'
  let response: Response
  try {
    response = await fetch(target, {
      method,
      headers: sent,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
      cache: 'no-store',
    })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new RequestFailed(0, 'unreachable', 'The server does not answer. Is it running?')
  }
  if (!response.ok) throw await failureOf(response)
  return {
    body: (await response.json()) as T,
    log: response.headers.get('Spawnlog-Log') ?? '',
    position: Number(response.headers.get('Spawnlog-Position') ?? 0),
    recordedAt: response.headers.get('Spawnlog-Recorded-At'),
    etag: response.headers.get('ETag'),
  }
}

export async function failureOf(response: Response): Promise<RequestFailed> {
  const after = response.headers.get('Retry-After')
  const retryAfterMs = after === null ? null : Number(after) * 1000
  const log = response.headers.get('Spawnlog-Log') ?? ''
  try {
    const problem = (await response.json()) as Problem
    return new RequestFailed(response.status, problem.code, problem.detail, problem, retryAfterMs, log)
  } catch {
    // A proxy in between answers in its own words, which are nobody's here.
    return new RequestFailed(
      response.status,
      'unknown',
      `Something between this page and the server answered ${response.status}.`,
      {},
      retryAfterMs,
      log,
    )
  }
}
