// What is going on at the moment that is shown: one count for the badges of the navigation and for all views.

import { untrack } from 'svelte'

import { read, RequestFailed } from '../api/requests'
import type { LiveRunsView } from '../api/shapes'
import { moment } from './moment.svelte'

const EVERY_MS = 5_000
const OFTEN_EVERY_MS = 1_000
/** Counts that take long are read less often: they keep the server busy a fifth of the time at most. */
const PAUSES_PER_ANSWER = 4
const REST_MS = 300

interface Counted {
  at: string | null
  position: number
  live: LiveRunsView
}

/** Live, counts are read again at most every five seconds, while the log grows and the tab is seen. In the
 * past they are read for each moment at which the user stays. */
class AtWork {
  #counted = $state.raw<Counted | null>(null)
  #watchers = 0
  #readAt = -EVERY_MS
  #readHead = -1
  #tookMs = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #isOver = false

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
      this.#readSoon()
      return () => (this.#watchers -= 1)
    })
  }

  /** The counts at the moment that is shown; null while they are not known. */
  get live(): LiveRunsView | null {
    return this.#of()?.live ?? null
  }

  /** The position at which they were counted; 0 while they are not known. */
  get position(): number {
    return this.#of()?.position ?? 0
  }

  /** Take counts that a view has read, unless newer ones are known. */
  take(at: string | null, position: number, live: LiveRunsView): void {
    const known = untrack(() => this.#counted)
    if (at !== moment.at || (known !== null && known.at === at && known.position > position)) return
    this.#counted = { at, position, live }
  }

  #of(): Counted | null {
    return this.#counted?.at === moment.at ? this.#counted : null
  }

  #readSoon(): void {
    const pauseMs = Math.max(this.#watchers > 0 ? OFTEN_EVERY_MS : EVERY_MS, PAUSES_PER_ANSWER * this.#tookMs)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const isNew = moment.head !== this.#readHead || this.#counted?.at !== null
      if (!document.hidden && moment.isLive && moment.head > 0 && isNew) void this.#read()
    }, Math.max(0, this.#readAt + pauseMs - performance.now()))
  }

  async #read(): Promise<void> {
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
      if (!this.#isOver) this.take(at, body.until, body.live)
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      this.#readHead = -1
    }
  }
}

export const atWork = new AtWork()
