// Requests to the HTTP API of the server that the page came from.

import { clock } from '../parts/clock.svelte'
import { readJson } from './json'
import { ROUTES, type Answers, type Bodies, type Parameters, type Problem } from './shapes'

/** An operation of the API, by its id: the types of parameters, body and answer follow from it. `make docs`
 * adds one that the page asks for the first time. */
export type Operation = keyof Parameters

export type WriteOperation = keyof Bodies
export type ReadOperation = Exclude<Operation, WriteOperation>

/** Exactly these parameters. Without it, TypeScript refuses unknown names in literals only. */
export type Exactly<Of extends Operation, Given> = Given & Record<Exclude<keyof Given, keyof Parameters[Of]>, never>

/** A response: its body, the log, and the position as of which it is true. */
export interface Answer<T> {
  body: T
  log: string
  position: number
  recordedAt: string | null
  etag: string | null
}

/** A refusal, or a missing response (`status` 0). `message` names the next step. */
export class RequestFailed extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly problem: Partial<Problem> = {},
    readonly retryAfterMs: number | null = null,
    /** Id of the server's log; empty if unknown. */
    readonly log = '',
  ) {
    super(detail)
    this.name = 'RequestFailed'
  }

  /** True if the server or the network is temporarily unavailable. */
  get isOutage(): boolean {
    return this.status === 0 || this.status === 503
  }
}

const TOKEN_KEY = 'spawnlog.token'

/** Return true if the text can be a token. With any other, the browser sends no request. */
export function mayBeToken(text: string): boolean {
  return /^[!-~]+$/.test(text)
}

export function readToken(): string | null {
  const token = localStorage.getItem(TOKEN_KEY)
  return token !== null && mayBeToken(token) ? token : null
}

/** Store the token for all tabs of this browser; null signs all of them out. */
export function writeToken(token: string | null): void {
  if (token === null) localStorage.removeItem(TOKEN_KEY)
  else localStorage.setItem(TOKEN_KEY, token)
}

/** Call `then` when another tab has signed in or out, also while this one was suspended. */
export function onTokenChange(then: () => void): void {
  addEventListener('storage', (event) => {
    if (event.key === TOKEN_KEY || event.key === null) then()
  })
  addEventListener('pageshow', (event) => {
    if (event.persisted) then()
  })
}

let whenRefused = (): void => undefined

/** Call `then` when the server no longer accepts the token of this browser. */
export function onTokenRefused(then: () => void): void {
  whenRefused = then
}

const PAGE_TOKEN = 'slp_'

/** Revoke the token of this browser if it was made for the page. */
export async function revokeToken(): Promise<void> {
  if (!readToken()?.startsWith(PAGE_TOKEN)) return
  try {
    const { method, target } = requestOf('revokePageToken', {})
    await fetch(target, { method, headers: authorization(), keepalive: true })
  } catch {
    // The server is unavailable: the token expires by itself.
  }
}

/** Return the method of a request, and its path with path and query parameters. */
export function requestOf<Of extends Operation>(operation: Of, parameters: Parameters[Of]): { method: string; target: string } {
  const [method, template] = ROUTES[operation].split(' ') as [string, string]
  let path = template
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    const place = `{${name}}`
    if (path.includes(place)) path = path.replace(place, encodeURIComponent(String(value)))
    else if (value !== null && value !== undefined && value !== '')
      for (const one of Array.isArray(value) ? value : [value]) query.append(name, String(one))
  }
  const text = query.toString()
  return { method, target: text ? `${path}?${text}` : path }
}

export function authorization(token = readToken()): Record<string, string> {
  return token === null ? {} : { Authorization: `Bearer ${token}` }
}

const ANSWERS_KEPT_MAX = 200
/** An answer about a later instant may still grow: another server may not have written yet what its runs printed. */
const SETTLED_MS = 30_000
let kept = new Map<string, Answer<unknown>>()

/** Empty the cache, for another token or log. Pending responses are not cached. */
export function forgetAnswers(): void {
  kept = new Map()
}

/**
 * Send a read. With `isForever`, the response never changes, because it is as of a past position of the
 * log; the last 200 of these are cached, but for those about the last 30 seconds. `last` is the previous response to the same request: its body is
 * reused if the server confirms its ETag.
 */
export async function read<Of extends ReadOperation, Given extends Parameters[Of]>(
  operation: Of,
  parameters: Exactly<Of, Given>,
  options: { signal?: AbortSignal; isForever?: boolean; last?: Answer<Answers[Of]> | null } = {},
): Promise<Answer<Answers[Of]>> {
  const { method, target } = requestOf<Of>(operation, parameters)
  const answers = kept
  const known = answers.get(target)
  if (known !== undefined) {
    answers.delete(target)
    answers.set(target, known)
    return known as Answer<Answers[Of]>
  }
  const answer = await send<Answers[Of]>(method, target, { signal: options.signal, last: options.last })
  if (options.isForever && isSettled(answer.recordedAt)) {
    answers.set(target, answer)
    const oldest = answers.keys().next()
    if (answers.size > ANSWERS_KEPT_MAX && !oldest.done) answers.delete(oldest.value)
  }
  return answer
}

function isSettled(recordedAt: string | null): boolean {
  return recordedAt !== null && clock.now - Date.parse(recordedAt) > SETTLED_MS
}

let whenActed: (answer: Answer<unknown>) => void = () => undefined

/** Call `then` after each command that the server took. */
export function onActed(then: (answer: Answer<unknown>) => void): void {
  whenActed = then
}

/** Send a command. It takes effect once, however often it is sent with the same `key`. */
export async function act<Of extends WriteOperation>(
  operation: Of, parameters: Parameters[Of], body: Bodies[Of], key = newKey(),
): Promise<Answer<Answers[Of]>> {
  const { method, target } = requestOf(operation, parameters)
  const answer = await send<Answers[Of]>(method, target, { body, headers: { 'Idempotency-Key': key } })
  whenActed(answer)
  return answer
}

/** Send a request without the token of this browser, to sign in. */
export async function actAsNobody<Of extends WriteOperation>(operation: Of, parameters: Parameters[Of], body: Bodies[Of]): Promise<Answer<Answers[Of]>> {
  const { method, target } = requestOf(operation, parameters)
  return send(method, target, { body, token: null })
}

/** Return a unique key. Browsers have `randomUUID` only on secure connections. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, '0')).join('')
}

interface Sent<Body> {
  body?: unknown
  last?: Answer<Body> | null | undefined
  signal?: AbortSignal | undefined
  headers?: Record<string, string>
  token?: string | null
}

async function send<Body>(
  method: string,
  target: string,
  { body, signal, last, headers = {}, token = readToken() }: Sent<Body>,
): Promise<Answer<Body>> {
  const sent: Record<string, string> = { Accept: 'application/json', ...authorization(token), ...headers }
  if (body !== undefined) sent['Content-Type'] = 'application/json'
  if (last?.etag != null) sent['If-None-Match'] = last.etag
  const sentMs = Date.now()
  let response: Response
  let text = ''
  try {
    response = await fetch(target, {
      method,
      headers: sent,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
      cache: 'no-store',
    })
    clock.note(response.headers.get('Spawnlog-Clock'), sentMs, Date.now())
    // The server may end in the middle of a response.
    if (response.ok) text = await response.text()
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new RequestFailed(0, 'unreachable', 'The server does not answer. Is it running?')
  }
  const isSame = response.status === 304 && last != null
  if (!response.ok && !isSame) throw await failureOf(response, token)
  return {
    body: isSame ? last.body : (readJson(text) as Body),
    log: response.headers.get('Spawnlog-Log') ?? '',
    position: Number(response.headers.get('Spawnlog-Position') ?? 0),
    recordedAt: response.headers.get('Spawnlog-Recorded-At'),
    etag: response.headers.get('ETag'),
  }
}

/** How the server names the parameter of the address that is wrong: the page has no such names. */
const PARAMETER = /^\/(query|path)\/\S+: /

/** Return the error for a failed response to a request with this token. */
export async function failureOf(response: Response, token: string | null): Promise<RequestFailed> {
  // Ignore the failure of a token that was replaced meanwhile.
  if (response.status === 401 && token !== null && token === readToken()) whenRefused()
  const after = response.headers.get('Retry-After')
  const retryAfterMs = after === null ? null : Number(after) * 1000
  const log = response.headers.get('Spawnlog-Log') ?? ''
  try {
    const problem = (await response.json()) as Problem
    return new RequestFailed(response.status, problem.code, problem.detail.replace(PARAMETER, ''), problem, retryAfterMs, log)
  } catch {
    // A proxy answers in its own format, which is not shown.
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
