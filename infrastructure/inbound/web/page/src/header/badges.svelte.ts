// Reads what the badges of the navigation count, at the moment that is shown.

import { read, RequestFailed } from '../api/requests'
import type { LiveRunsView } from '../api/shapes'
import type { View } from '../moment/address'
import { moment } from '../moment/moment.svelte'
import { badgesOf, type Badge } from './badges'

const EVERY_MS = 5_000
const REST_MS = 300

/** Live, counts are read again at most every five seconds, while the log grows and the tab is seen. In the
 * past they are read for each moment at which the user stays. */
export class Badges {
  #counted = $state.raw<{ at: string | null; live: LiveRunsView } | null>(null)
  #readAt = -EVERY_MS
  #readHead = -1
  #timer: ReturnType<typeof setTimeout> | undefined
  #isOver = false

  constructor() {
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
      document.addEventListener('visibilitychange', onSeen)
      return () => {
        document.removeEventListener('visibilitychange', onSeen)
        this.#isOver = true
        clearTimeout(this.#timer)
      }
    })
  }

  /** None while those of the moment are not known. */
  get of(): Partial<Record<View, Badge>> {
    return this.#counted?.at === moment.at ? badgesOf(this.#counted.live, moment.isLive) : {}
  }

  #readSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const isNew = moment.head !== this.#readHead || this.#counted?.at !== null
      if (!document.hidden && moment.isLive && moment.head > 0 && isNew) void this.#read()
    }, Math.max(0, this.#readAt + EVERY_MS - performance.now()))
  }

  async #read(): Promise<void> {
    const { at, head, isForever } = moment
    if (at === null) {
      this.#readAt = performance.now()
      this.#readHead = head
    }
    try {
      const range = at === null ? { from: `pos:${head}`, minPosition: head } : { from: at, to: at }
      const summary = await read('getSummary', range, { isForever })
      if (!this.#isOver && at === moment.at) this.#counted = { at, live: summary.body.live }
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      this.#readHead = -1
    }
  }
}
