// What a view has asked for: one request at a time, and always the newest question next.

import { untrack } from 'svelte'

import { read, RequestFailed, type Answer, type Exactly, type ReadOperation } from '../api/requests'
import type { Answers, Parameters } from '../api/shapes'
import { moment } from './moment.svelte'

export interface AskedOptions {
  /** Whether the answer follows the log; if not, it stays while the log grows. Default: yes. */
  isFollowing?: () => boolean
  /** Whether the operation is asked as of the moment; if not, its answer is never kept. Default: yes. */
  isAsOf?: boolean
  /** When it changes, the same is asked again. */
  turn?: () => number | string | null
}

const RETRY_MS = 1_000

/** A response as of the page's moment, kept up to date while that is live. */
export class Asked<Of extends ReadOperation, Given extends Parameters[Of] = Parameters[Of]> {
  /** The last response; it stays while the next one is on its way. */
  value = $state.raw<Answers[Of] | null>(null)
  /** As of which position that is. */
  position = $state(0)
  /** And of which moment it was asked for. */
  at = $state<string | null>(null)
  problem = $state.raw<RequestFailed | null>(null)
  isBusy = $state(false)
  /** The server's name for the state that is there, if it has one. */
  etag = $state<string | null>(null)

  /** The last answer, which the next one is asked to differ from. */
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

  /** Asks again whenever the parameters change; null asks nothing. */
  constructor(
    operation: Of, parameters: () => Exactly<Of, Given> | null,
    { isFollowing = () => true, isAsOf = true, turn: turnOf }: AskedOptions = {},
  ) {
    this.#operation = operation
    this.#isFollowing = isFollowing
    this.#isAsOf = isAsOf
    $effect(() => {
      const asked = parameters()
      // What is of no moment is not asked again for another one.
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

  /** Whether what is there answers the question as it is now, and not the one before it. */
  get isCurrent(): boolean {
    return this.#asked === this.#answered
  }

  /** Whether what is there is as of the last position that is known already. */
  #isNewest(key: string): boolean {
    const isAnswered = key === this.#answered && this.problem === null
    return isAnswered && moment.isLive && moment.head > 0 && this.position >= moment.head
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
      // What came meanwhile may be what this was to be asked for.
      if (!isTurn && this.#isNewest(key)) continue
      try {
        const answer = await this.#read(parameters, key === this.#answered ? this.#last : null)
        moment.takeNote(answer)
        // A server that is behind the one that answered before tells nothing new.
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
        // A server of another, shorter log knows none of the positions that were shown.
        moment.takeNoteOfLog(error.log)
        this.problem = error
        // What was asked before has nothing to do with this question.
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
      // Somebody has begun to read meanwhile what is there: nothing newer may move it.
      if (key === this.#answered && !this.#isFollowing()) this.problem = null
      else this.#ask(parameters, key)
    }, afterMs)
  }
}
