// Follows the record until each announcement that was sent again is delivered or has failed again.

import { untrack } from 'svelte'

import { read, RequestFailed } from '../api/requests'
import type { RedrivenItem } from '../api/shapes'
import { moment } from '../moment/moment.svelte'
import { DELIVERY_EVENTS, Redelivery, type Progress } from './redelivery'

const PAGE_EVENTS = 500
const EVERY_MS = 1_000

export class Following {
  /** How far it is; null if nothing was sent again. */
  progress = $state.raw<Progress | null>(null)
  /** The position up to which the record was read. */
  position = $state(0)
  /** A position after the last ones were sent again: what was counted before it has them as parked. */
  sentBefore = $state(0)

  /** How many requests to send again are on their way. */
  #sending = $state(0)
  readonly #redelivery = new Redelivery()
  /** Grows with each addition: what was read before it is read again. */
  #additions = 0
  #isReading = false
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor() {
    $effect(() => {
      void moment.refresh
      untrack(() => this.#readIfDue())
    })
    $effect(() => () => clearTimeout(this.#timer))
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
      // What became of the first may be recorded by now.
      await this.#read()
      this.sentBefore = this.position
      this.#readIfDue()
    } finally {
      this.#sending -= 1
    }
  }

  /** Whether requests to send again are on their way. */
  get isSending(): boolean {
    return this.#sending > 0
  }

  /** Return true while something is sent or is on its way, as counted at a position. */
  isUnderWayAt(counted: number): boolean {
    return this.isSending || (this.progress !== null && (this.progress.due > 0 || counted < this.position))
  }

  #readIfDue(): void {
    if (this.progress !== null && this.progress.due > 0) this.#readSoon()
  }

  #readSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      if (this.#isReading) this.#readSoon()
      else void this.#read()
    }, EVERY_MS)
  }

  async #read(): Promise<void> {
    const redelivery = this.#redelivery
    const additions = this.#additions
    this.#isReading = true
    try {
      for (;;) {
        const { body } = await read('listEvents', { after: redelivery.position, types: [...DELIVERY_EVENTS], limit: PAGE_EVENTS })
        if (additions !== this.#additions) return
        for (const event of body.items) redelivery.take(event)
        const isEnd = body.nextAfter >= body.head || body.nextAfter <= redelivery.position
        redelivery.position = Math.max(redelivery.position, body.nextAfter)
        if (isEnd) break
      }
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      // It is read again when the log grows.
    } finally {
      if (additions === this.#additions) {
        this.position = redelivery.position
        this.progress = redelivery.progress()
        this.#isReading = false
      }
    }
  }
}
