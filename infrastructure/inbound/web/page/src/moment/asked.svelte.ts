// Answers that a view shows: one request at a time, and the newest question next.

import { untrack } from 'svelte'

import { read, RequestFailed, type Answer, type Exactly, type ReadOperation } from '../api/requests'
import type { Answers, Parameters } from '../api/shapes'
import { moment } from './moment.svelte'

export interface AskedOptions {
  /** Whether the answer is read again as the log grows. Default: yes. */
  isFollowing?: () => boolean
  /** Whether the request has the moment as `at`; without it no answer is cached. Default: yes. */
  isAsOf?: boolean
  /** When it changes, the same request is sent again. */
  turn?: () => number | string | null
}

const RETRY_MS = 1_000

/** An answer as of the page's moment, kept up to date while that is live. */
export class Asked<Of extends ReadOperation, Given extends Parameters[Of] = Parameters[Of]> {
  /** The last answer; it stays until the next one arrives. */
  value = $state.raw<Answers[Of] | null>(null)
  /** The position of that answer. */
  position = $state(0)
  /** The moment that it was requested for. */
  at = $state<string | null>(null)
  problem = $state.raw<RequestFailed | null>(null)
  isBusy = $state(false)
  /** The ETag of that answer, if it has one. */
  etag = $state<string | null>(null)

  /** The last answer; the next request has its ETag. */
  #last: Answer<Answers[Of]> | null = null
  #turn: number | string | null | undefined
  #asked = $state('')
  #answered = $state('')
  #asking = false
  #next: { parameters: Parameters[Of]; key: string; isTurn: boolean } | null = null
  #ending = new AbortController()
  #retry: ReturnType<typeof setTimeout> | undefined
  readonly #operation: Of
  readonly #isFollowing: () => boolean
  readonly #isAsOf: boolean

  /** Send the request whenever the parameters change; null sends none. */
  constructor(
    operation: Of, parameters: () => Exactly<Of, Given> | null,
    { isFollowing = () => true, isAsOf = true, turn: turnOf }: AskedOptions = {},
  ) {
    this.#operation = operation
    this.#isFollowing = isFollowing
    this.#isAsOf = isAsOf
    // The server works on the answer while the browser makes the view.
    $effect.pre(() => {
      const asked = parameters()
      // An operation without moment is not asked again for another one.
      const at = isAsOf ? moment.at : null
      const logs = moment.logs
      if (at === null && isFollowing()) void moment.refresh
      if (asked === null) {
        this.#next = null
        return
      }
      const turn = turnOf?.()
      const key = JSON.stringify([asked, at, logs])
      const isTurn = turn !== this.#turn
      this.#turn = turn
      this.#asked = key
      untrack(() => {
        if (this.#asking || isTurn || !this.#isNewest(key)) this.#ask(asked, key, isTurn)
      })
    })
    $effect(() => () => {
      this.#ending.abort()
      clearTimeout(this.#retry)
    })
  }

  /** Whether the answer belongs to the current parameters and not to earlier ones. */
  get isCurrent(): boolean {
    return this.#asked === this.#answered
  }

  /** Return true if the answer is as of the last known position, or as of one that never changes. */
  #isNewest(key: string): boolean {
    if (key !== this.#answered || this.problem !== null) return false
    return moment.isLive ? moment.head > 0 && this.position >= moment.head : this.#isAsOf && moment.isForever
  }

  #ask(parameters: Parameters[Of], key: string, isTurn = false): void {
    clearTimeout(this.#retry)
    this.#next = { parameters, key, isTurn: isTurn || this.#next?.isTurn === true }
    if (!this.#asking) void this.#work()
  }

  async #work(): Promise<void> {
    this.#asking = true
    this.isBusy = true
    while (this.#next !== null && !this.#ending.signal.aborted) {
      const { parameters, key, isTurn } = this.#next
      const at = moment.at
      this.#next = null
      // An answer that arrived meanwhile may be the one that this asks for.
      if (!isTurn && this.#isNewest(key)) continue
      try {
        const answer = await this.#read(parameters, key === this.#answered ? this.#last : null)
        moment.takeNote(answer)
        // A server that lags behind the one that answered before has nothing new.
        if (key === this.#answered && answer.position < this.position) continue
        this.#answered = key
        this.#last = answer
        this.etag = answer.etag
        this.value = answer.body
        this.position = answer.position
        this.at = at
        this.problem = null
      } catch (error) {
        if (this.#ending.signal.aborted) break
        if (!(error instanceof RequestFailed)) throw error
        // A server of another, shorter log answers 404 to the positions that were shown.
        moment.takeNoteOfLog(error.log)
        this.problem = error
        // An answer to another question must not stay.
        if (key !== this.#answered) {
          this.value = null
          this.position = 0
          this.#answered = ''
        }
        if (error.isOutage && this.#next === null) this.#askAgain(parameters, key, error.retryAfterMs ?? RETRY_MS)
      }
    }
    this.#asking = false
    this.isBusy = false
  }

  #read(asked: Parameters[Of], last: Answer<Answers[Of]> | null): Promise<Answer<Answers[Of]>> {
    const at = this.#isAsOf && moment.at !== null ? { at: moment.at } : {}
    const newest = moment.at === null && moment.head > 0 ? { minPosition: moment.head } : {}
    const parameters: Parameters[Of] = { ...asked, ...at, ...newest }
    return read(this.#operation, parameters as Exactly<Of, Parameters[Of]>, {
      signal: this.#ending.signal,
      isForever: this.#isAsOf && moment.isForever,
      last,
    })
  }

  #askAgain(parameters: Parameters[Of], key: string, afterMs: number): void {
    this.#retry = setTimeout(() => {
      // The user has begun to read the answer meanwhile: nothing newer may move it.
      if (key === this.#answered && !this.#isFollowing()) this.problem = null
      else this.#ask(parameters, key)
    }, afterMs)
  }
}
