// The moment that all views show, and the end of the log.

import { untrack } from 'svelte'

import { forgetAnswers, read, RequestFailed, type Answer } from '../api/requests'
import { followLog, type Recorded, type StreamState } from '../api/stream'
import { clock } from '../parts/clock.svelte'
import { FIRST_VIEW, readAddress, writeAddress, type Address, type View } from './address'

const REFRESH_EVERY_MS = 120
const REPLACE_PAUSE_MS = 150
/** A scrub that follows so soon belongs to the same walk. */
const SCRUB_PAUSE_MS = 1_000
const RETRY_MS = 1_000
const POSITION = /^pos:(\d{1,15})$/

class Moment {
  address = $state.raw<Address>(readAddress(location.pathname, location.search))
  /** The last known position, and its instant. */
  head = $state(0)
  headAt = $state<string | null>(null)
  /** Grows when live views must read again: at most eight times a second, and never in a hidden tab. */
  refresh = $state(0)
  stream = $state<StreamState>('connecting')
  /** Since when the server has been away, by the clock of this browser; null while it is there. */
  lostAt = $state<number | null>(null)
  /** Why the address names no moment; null if it does. */
  problem = $state.raw<RequestFailed | null>(null)
  /** Grows with each log: nothing of another one may be shown. */
  logs = $state(0)

  #log = ''
  /** The last position of which the views know: the first one, then those of the stream. The answer to one view
   * may be newer, and the others must still read again. */
  #told = 0
  #refreshTimer: ReturnType<typeof setTimeout> | undefined
  #replaceTimer: ReturnType<typeof setTimeout> | undefined
  #refreshedAt = 0
  /** Whether something was recorded while the tab was hidden. */
  #isBehind = false
  #isScrubbing = false
  #scrubbedAt = -SCRUB_PAUSE_MS
  /** The last answer as of a position of the past, and its instant. */
  #noted = $state.raw<{ position: number; at: string | null } | null>(null)

  get at(): string | null {
    return this.address.at
  }

  get isLive(): boolean {
    return this.address.at === null
  }

  /** Whether the address names a moment other than by its position. It is looked up once, so that all
   * views show the same one and a link to it stays the same. */
  get isSought(): boolean {
    return this.address.at !== null && !POSITION.test(this.address.at)
  }

  /** The position of the moment in the past; 0 if it is live. */
  get position(): number {
    const position = this.address.at === null ? null : POSITION.exec(this.address.at)?.[1]
    return position === undefined || position === null ? 0 : Number(position)
  }

  /** The instant of that position; null until an answer has it. */
  get recordedAt(): string | null {
    return this.#noted?.position === this.position ? this.#noted.at : null
  }

  /** Until when a run that is not over has run, in milliseconds: live the clock of the log, in the past
   * the instant of the moment; null until an answer has it. */
  get now(): number | null {
    if (this.isLive) return clock.now
    return this.recordedAt === null ? null : Date.parse(this.recordedAt)
  }

  /** Whether an answer as of the moment never changes. */
  get isForever(): boolean {
    const at = this.address.at
    return at !== null && POSITION.test(at) && this.position <= this.head
  }

  filter(name: string): string | null {
    return this.address.filters.find(([key]) => key === name)?.[1] ?? null
  }

  filterValues(name: string): string[] {
    return this.address.filters.filter(([key]) => key === name).map(([, value]) => value)
  }

  /** Follow the address and the log, or the events of the run that a child's token may see. Return a
   * function that ends it. */
  start(runId: string | null): () => void {
    // The user may have gone back or forward before signing in.
    const now = readAddress(location.pathname, location.search)
    // The same address as another object would make all views ask again.
    if (writeAddress(now) !== writeAddress(untrack(() => this.address))) this.address = now
    const onPop = (): void => {
      this.address = readAddress(location.pathname, location.search)
    }
    const onSeen = (): void => {
      if (!document.hidden && this.#isBehind) this.#refreshSoon()
    }
    addEventListener('popstate', onPop)
    document.addEventListener('visibilitychange', onSeen)
    const end = followLog(
      () => untrack(() => this.head),
      runId,
      (recorded) => this.#recorded(recorded),
      (state) => {
        const wasLost = this.stream === 'lost'
        this.stream = state
        this.lostAt = state === 'lost' ? (this.lostAt ?? Date.now()) : state === 'open' ? null : this.lostAt
        if (state === 'open' && wasLost) this.#refreshSoon()
      },
    )
    return () => {
      removeEventListener('popstate', onPop)
      document.removeEventListener('visibilitychange', onSeen)
      end()
      clearTimeout(this.#refreshTimer)
      clearTimeout(this.#replaceTimer)
    }
  }

  /** Go to a view as of the same moment, with these filters. */
  go(view: View, id: string | null = null, filters: [string, string][] = []): void {
    this.#push({ view, id, at: this.address.at, filters })
  }

  /** Show everything as of another moment; null is live. The address follows a `scrub` or `step` at
   * each pause. A walk by scrubs or steps is one entry of the history at most. */
  show(at: string | null, how: 'go' | 'scrub' | 'step' = 'go'): void {
    const isScrubbing = how === 'scrub'
    const isOnTheWay = this.#isScrubbing || performance.now() - this.#scrubbedAt < SCRUB_PAUSE_MS
    if (this.#isScrubbing || isScrubbing) this.#scrubbedAt = performance.now()
    this.#isScrubbing = isScrubbing
    if (at === this.address.at) return
    const address = { ...this.address, at }
    const isSameWalk = isScrubbing ? isOnTheWay : how === 'step' && this.address.at !== null
    if (!isSameWalk) this.#push(address)
    else {
      this.address = address
      this.#replaceSoon()
    }
  }

  setFilters(name: string, values: string[]): void {
    const others = this.address.filters.filter(([key]) => key !== name)
    const filters = [...others, ...values.filter(Boolean).map((v): [string, string] => [name, v])]
    this.address = { ...this.address, filters }
    this.#replaceSoon()
  }

  /** Return the link to a view, as of the same moment. */
  link(view: View, id: string | null = null, filters: [string, string][] = []): string {
    return writeAddress({ view, id, at: this.address.at, filters })
  }

  linkAt(at: string | null): string {
    return writeAddress({ ...this.address, at })
  }

  /** Note the log, position and instant of an answer. */
  takeNote(answer: Answer<unknown>): void {
    this.#ofLog(answer.log)
    if (answer.position > this.head) {
      if (this.head === 0) this.#told = answer.position
      this.head = answer.position
      this.headAt = answer.recordedAt
    }
    if (!this.isLive && answer.position === this.position) this.#noted = { position: answer.position, at: answer.recordedAt }
  }

  /** Note the log of a server. */
  takeNoteOfLog(log: string): void {
    this.#ofLog(log)
  }

  /** Return the position of a moment, as `pos:N`. */
  async find(at: string, signal?: AbortSignal): Promise<string> {
    const answer = await read('getMoment', { at, around: 0 }, signal ? { signal } : {})
    this.takeNote(answer)
    return `pos:${answer.body.position}`
  }

  /** Look up the moment that the address names, and put its position there. */
  async locate(signal: AbortSignal): Promise<void> {
    const asked = this.address.at
    this.problem = null
    while (asked !== null && this.isSought) {
      try {
        const at = await this.find(asked, signal)
        if (this.address.at !== asked) return
        this.problem = null
        this.address = { ...this.address, at }
        history.replaceState(null, '', writeAddress(this.address))
        return
      } catch (error) {
        if (signal.aborted || this.address.at !== asked) return
        if (!(error instanceof RequestFailed)) throw error
        this.problem = error
        if (!error.isOutage) return
        await new Promise((resolve) => setTimeout(resolve, error.retryAfterMs ?? RETRY_MS))
      }
    }
  }

  #recorded(recorded: Recorded): void {
    this.#ofLog(recorded.log)
    if (recorded.position <= this.#told) return
    this.#told = recorded.position
    // The first position becomes known while views are being read anyway.
    if (this.head === 0) this.#refreshedAt = performance.now()
    if (recorded.position > this.head) {
      this.head = recorded.position
      this.headAt = recorded.recordedAt
    }
    this.#refreshSoon()
  }

  #ofLog(log: string): void {
    if (log === '' || log === this.#log) return
    const isAnother = this.#log !== ''
    this.#log = log
    if (!isAnother) return
    forgetAnswers()
    this.head = 0
    this.#told = 0
    this.headAt = null
    this.#noted = null
    this.problem = null
    this.logs += 1
    this.#push({ view: FIRST_VIEW, id: null, at: null, filters: [] })
    this.#refreshSoon()
  }

  #refreshSoon(): void {
    if (this.#refreshTimer !== undefined) return
    const wait = Math.max(0, this.#refreshedAt + REFRESH_EVERY_MS - performance.now())
    this.#refreshTimer = setTimeout(() => {
      this.#refreshTimer = undefined
      this.#isBehind = document.hidden
      if (this.#isBehind) return
      this.#refreshedAt = performance.now()
      this.refresh += 1
    }, wait)
  }

  #push(address: Address): void {
    if (this.#replaceTimer !== undefined) {
      // The entry that is left gets the moment and filters that it showed last.
      clearTimeout(this.#replaceTimer)
      this.#replaceTimer = undefined
      history.replaceState(null, '', writeAddress(this.address))
    }
    const target = writeAddress(address)
    if (target !== location.pathname + location.search) history.pushState(null, '', target)
    this.address = address
  }

  /** Write the address at a pause: each change of it costs the browser time. */
  #replaceSoon(): void {
    clearTimeout(this.#replaceTimer)
    this.#replaceTimer = setTimeout(() => {
      this.#replaceTimer = undefined
      history.replaceState(null, '', writeAddress(this.address))
    }, REPLACE_PAUSE_MS)
  }
}

export const moment = new Moment()
