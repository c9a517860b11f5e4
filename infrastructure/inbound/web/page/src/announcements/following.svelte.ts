// Follows the record until each announcement that was sent again is delivered or parked again.

import { read } from '../api/requests'
import type { RedrivenItem } from '../api/shapes'
import { atWork } from '../moment/at_work.svelte'
import { moment } from '../moment/moment.svelte'
import { DELIVERY_EVENTS, Redelivery, type Progress } from './redelivery'

const PAGE_EVENTS = 500

/** The record is read with each count of what is parked, up to the same position: both are shown at once. */
export class Following {
  /** How far it is; null if nothing was sent again. */
  progress = $state.raw<Progress | null>(null)
  /** Changes when more became of what was sent again. */
  turn = $state(0)

  /** How many requests to send again are on their way. */
  #sending = $state(0)
  /** Whether the last count is from before the last ones were sent. */
  #isUncounted = $state(false)
  readonly #redelivery = new Redelivery()
  /** A position after the last ones were sent again. */
  #sentBefore = 0
  /** Grows with each addition: what was read before it is read again. */
  #additions = 0

  constructor() {
    const end = atWork.accompany((until) => this.#read(until))
    $effect(() => end)
  }

  /** Send announcements again, and follow them beside those that are still on their way. */
  async send(send: () => Promise<RedrivenItem[]>): Promise<void> {
    const after = moment.head
    this.#sending += 1
    try {
      const redriven = await send()
      if (redriven.length === 0) return
      this.#redelivery.add(redriven, after)
      this.#additions += 1
      this.#sentBefore = moment.head
      this.#isUncounted = true
      await atWork.readNow()
    } finally {
      this.#sending -= 1
    }
  }

  /** Whether requests to send again are on their way. */
  get isSending(): boolean {
    return this.#sending > 0
  }

  /** Whether everything that was sent again is counted. */
  get isCounted(): boolean {
    return !this.isSending && !this.#isUncounted
  }

  /** Whether something is sent or is on its way. */
  get isUnderWay(): boolean {
    return !this.isCounted || (this.progress?.due ?? 0) > 0
  }

  async #read(until: number): Promise<() => void> {
    const redelivery = this.#redelivery
    while (redelivery.progress().due > 0 && redelivery.position < until) {
      const additions = this.#additions
      const { body } = await read('listEvents', { after: redelivery.position, types: [...DELIVERY_EVENTS], limit: PAGE_EVENTS, minPosition: until })
      if (additions !== this.#additions) continue
      for (const event of body.items) if (event.position <= until) redelivery.take(event)
      if (body.nextAfter <= redelivery.position) break
      redelivery.position = Math.min(until, body.nextAfter)
    }
    return () => {
      if (this.#additions === 0 || until < this.#sentBefore) return
      this.progress = redelivery.progress()
      this.turn += 1
      this.#isUncounted = false
    }
  }
}
