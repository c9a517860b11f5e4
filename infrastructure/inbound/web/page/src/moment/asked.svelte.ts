// What a view has asked for: one request at a time, and always the newest question next.

import { untrack } from 'svelte'

import { read, RequestFailed, type Answer, type Operation, type Parameters } from '../api/requests'
import type { Answers } from '../api/shapes'
import { moment } from './moment.svelte'

export interface Question {
  path: string
  parameters?: Parameters
  /** Whether it takes `at`; a question that does not is never kept. */
  isAsOf?: boolean
  /** With another one the same is asked again. */
  turn?: number | string | null
}

const RETRY_MS = 1_000

/** A response as of the page's moment, kept up to date while that is live. */
export class Asked<Of extends Operation> {
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
  #turn: Question['turn']
  #asked = $state('')
  #answered = $state('')
  #asking = false
  #next: { question: Question; key: string; isTurn: boolean } | null = null
  #ending = new AbortController()
  #retry: ReturnType<typeof setTimeout> | undefined
  #isFollowing: () => boolean

  /** `question` is asked again whenever something in it changes; null asks nothing. With
   * `isFollowing` false the answer stays while the log grows. */
  constructor(question: () => Question | null, isFollowing: () => boolean = () => true) {
    this.#isFollowing = isFollowing
    $effect(() => {
      const asked = question()
      // What is of no moment is not asked again for another one.
      const at = asked?.isAsOf === false ? null : moment.at
      const logs = moment.logs
      if (at === null && isFollowing()) void moment.refresh
      if (asked === null) {
        this.#next = null
        return
      }
      const { turn, ...same } = asked
      const key = JSON.stringify([same, at, logs])
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

  #ask(question: Question, key: string, isTurn = false): void {
    clearTimeout(this.#retry)
    this.#next = { question, key, isTurn: isTurn || this.#next?.isTurn === true }
    if (!this.#asking) void this.#work()
  }

  async #work(): Promise<void> {
    this.#asking = true
    this.isBusy = true
    while (this.#next !== null && !this.#ending.signal.aborted) {
      const { question, key, isTurn } = this.#next
      const at = moment.at
      this.#next = null
      // What came meanwhile may be what this was to be asked for.
      if (!isTurn && this.#isNewest(key)) continue
      try {
        const answer = await this.#read(question, key === this.#answered ? this.#last : null)
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
        if (error.isOutage && this.#next === null) this.#askAgain(question, key, error.retryAfterMs ?? RETRY_MS)
      }
    }
    this.#asking = false
    this.isBusy = false
  }

  #read(question: Question, last: Answer<Answers[Of]> | null): Promise<Answer<Answers[Of]>> {
    const parameters = { ...question.parameters }
    const isAsOf = question.isAsOf !== false
    if (isAsOf && moment.at !== null) parameters['at'] = moment.at
    if (moment.at === null && moment.head > 0) parameters['minPosition'] = moment.head
    return read<Of>(question.path, parameters, {
      signal: this.#ending.signal,
      isForever: isAsOf && moment.isForever,
      last,
    })
  }

  #askAgain(question: Question, key: string, afterMs: number): void {
    this.#retry = setTimeout(() => {
      // Somebody has begun to read meanwhile what is there: nothing newer may move it.
      if (key === this.#answered && !this.#isFollowing()) this.problem = null
      else this.#ask(question, key)
    }, afterMs)
  }
}
