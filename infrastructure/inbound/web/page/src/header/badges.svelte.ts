// Numbers beside the views in the navigation: what is going on now.

import { read, RequestFailed } from '../api/requests'
import { moment } from '../moment/moment.svelte'
import type { View } from '../moment/address'

const EVERY_MS = 5_000

export interface Badge {
  text: string
  /** What it counts, for a screen reader and on hover. */
  meaning: string
  isBad?: boolean
}

/** Counts of the present, read again at most every five seconds, while the log grows and the tab is seen. */
export class Badges {
  of = $state.raw<Partial<Record<View, Badge>>>({})

  #readAt = -EVERY_MS
  #readHead = -1
  #timer: ReturnType<typeof setTimeout> | undefined
  #isOver = false

  constructor() {
    $effect(() => {
      void [moment.refresh, moment.logs]
      if (moment.head > 0) this.#readSoon()
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

  #readSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      if (!document.hidden && moment.head > 0 && moment.head !== this.#readHead) void this.#read()
    }, Math.max(0, this.#readAt + EVERY_MS - performance.now()))
  }

  async #read(): Promise<void> {
    this.#readAt = performance.now()
    this.#readHead = moment.head
    try {
      const now = `pos:${moment.head}`
      const [runs, summary] = await Promise.all([
        read('listRuns', { limit: 1, totals: true }), read('getSummary', { from: now, to: now, minPosition: moment.head }),
      ])
      if (this.#isOver) return
      const statuses = runs.body.totals?.statuses ?? {}
      const running = statuses['running'] ?? 0
      const waiting = (statuses['queued'] ?? 0) + (statuses['waiting'] ?? 0)
      const { parkedAnnouncements: parked, cut } = summary.body.live
      this.of = {
        ...(running > 0 ? { runs: { text: short(running), meaning: `${running} running now` } } : {}),
        ...(waiting > 0 ? { lanes: { text: short(waiting), meaning: `${waiting} queued or waiting now` } } : {}),
        ...(parked > 0 ? { announcements: { text: `${parked}${cut ? '+' : ''}`, meaning: `${parked}${cut ? ' or more' : ''} not delivered`, isBad: true } } : {}),
      }
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      this.#readHead = -1
    }
  }
}

function short(count: number): string {
  return count > 999 ? '999+' : String(count)
}
