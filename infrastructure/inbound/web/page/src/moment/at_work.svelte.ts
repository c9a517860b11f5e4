// What is going on at the moment that is shown: one count for the badges of the navigation and for all views.

import { untrack } from 'svelte'

import { onActed, read, RequestFailed } from '../api/requests'
import type { LiveRunsView } from '../api/shapes'
import { moment } from './moment.svelte'

const EVERY_MS = 5_000
const OFTEN_EVERY_MS = 1_000
/** How long after the first answer they are read first: a view may have read them by then. */
const FIRST_MS = 500
/** Counts that take long are read less often: they keep the server busy a fifth of the time at most. */
const PAUSES_PER_ANSWER = 4
const REST_MS = 300

interface Counted {
  at: string | null
  position: number
  live: LiveRunsView
}

/** Reads up to the position of a count, and returns what shows it. */
type Beside = (until: number) => Promise<() => void>

/** Live, counts are read again at most every five seconds, while the log grows and the tab is seen; after each
 * command of the user at once, and every second while it takes effect. In the past they are read for each moment at
 * which the user stays. */
class AtWork {
  #counted = $state.raw<Counted | null>(null)
  #watchers = 0
  #readAt: number | null = null
  #readHead = -1
  #tookMs = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #isOver = false
  #actedAt = -EVERY_MS
  /** The read that is under way. */
  #reading: Promise<void> | null = null
  readonly #beside = new Set<Beside>()

  constructor() {
    onActed((answer) => {
      moment.takeNote(answer)
      this.#actedAt = performance.now()
      void this.readNow()
    })
  }

  /** Count from now on, until the component that calls this at its start ends. */
  follow(): void {
    $effect(() => {
      void moment.logs
      this.#counted = null
    })
    $effect(() => {
      void moment.logs
      if (moment.isLive) {
        void moment.refresh
        if (moment.head > 0) this.#readSoon()
        return undefined
      }
      if (moment.at === null || moment.isSought) return undefined
      const timer = setTimeout(() => void this.#read(), REST_MS)
      return () => clearTimeout(timer)
    })
    $effect(() => {
      const onSeen = (): void => this.#readSoon()
      this.#isOver = false
      document.addEventListener('visibilitychange', onSeen)
      return () => {
        document.removeEventListener('visibilitychange', onSeen)
        this.#isOver = true
        clearTimeout(this.#timer)
        this.#timer = undefined
      }
    })
  }

  /** Count every second until the component that calls this at its start ends. */
  watch(): void {
    $effect(() => {
      this.#watchers += 1
      clearTimeout(this.#timer)
      this.#timer = undefined
      // Its view is the first: it waits for no other.
      this.#readAt ??= -EVERY_MS
      this.#readSoon()
      return () => (this.#watchers -= 1)
    })
  }

  /** Read something else with each live count, and show both at once. Return a function that ends it. */
  accompany(beside: Beside): () => void {
    this.#beside.add(beside)
    return () => this.#beside.delete(beside)
  }

  /** Count at once. Resolve when counts of all that is known now are shown. */
  async readNow(): Promise<void> {
    const { head } = moment
    while (this.#reading !== null && this.#readHead < head) await this.#reading
    await (this.#reading ?? (moment.isLive ? this.#read() : undefined))
  }

  /** The counts at the moment that is shown; null while they are not known. */
  get live(): LiveRunsView | null {
    return this.#of()?.live ?? null
  }

  /** The position at which they were counted; 0 while they are not known. */
  get position(): number {
    return this.#of()?.position ?? 0
  }

  /** Take counts that a view has read, unless newer ones are known. They are not read again for a while. */
  take(at: string | null, position: number, live: LiveRunsView): void {
    const known = untrack(() => this.#counted)
    if (at !== moment.at || (known !== null && known.at === at && known.position > position)) return
    this.#counted = { at, position, live }
    if (at !== null) return
    this.#readHead = Math.max(this.#readHead, position)
    this.#readAt = performance.now()
  }

  #of(): Counted | null {
    return this.#counted?.at === moment.at ? this.#counted : null
  }

  #readSoon(): void {
    const isOften = this.#watchers > 0 || performance.now() - this.#actedAt < EVERY_MS
    const pauseMs = Math.max(isOften ? OFTEN_EVERY_MS : EVERY_MS, PAUSES_PER_ANSWER * this.#tookMs)
    this.#readAt ??= performance.now() + FIRST_MS - pauseMs
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const isNew = moment.head !== this.#readHead || this.#counted?.at !== null
      if (document.hidden || !moment.isLive || moment.head === 0 || !isNew) return
      if (performance.now() < this.#readAt! + pauseMs) this.#readSoon()
      else void this.readNow()
    }, Math.max(0, this.#readAt + pauseMs - performance.now()))
  }

  #read(): Promise<void> {
    if (!moment.isLive) return this.#readOnce()
    this.#reading = this.#readOnce().finally(() => (this.#reading = null))
    return this.#reading
  }

  async #readOnce(): Promise<void> {
    const { at, head, isForever } = moment
    const askedAt = performance.now()
    if (at === null) {
      this.#readAt = askedAt
      this.#readHead = head
    }
    try {
      const range = at === null ? { from: `pos:${head}`, minPosition: head } : { from: at, to: at }
      const { body } = await read('getSummary', range, { isForever })
      if (at === null) this.#tookMs = performance.now() - askedAt
      const shows = at === null ? await Promise.all([...this.#beside].map((one) => one(body.until))) : []
      if (this.#isOver) return
      this.take(at, body.until, body.live)
      for (const show of shows) show()
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      this.#readHead = -1
      if (error.isOutage && !this.#isOver) this.#readSoon()
    }
  }
}

export const atWork = new AtWork()
