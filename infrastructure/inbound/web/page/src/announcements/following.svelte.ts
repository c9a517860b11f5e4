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

  #redelivery = new Redelivery()
  #after = 0
  #isReading = false
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor() {
    $effect(() => {
      void moment.refresh
      untrack(() => this.#readIfDue())
    })
    $effect(() => () => clearTimeout(this.#timer))
  }

  /** Follow these, which were sent again after the position `after`. */
  follow(redriven: RedrivenItem[], after: number): void {
    this.#redelivery = new Redelivery()
    this.#redelivery.add(redriven)
    this.#after = after
    this.progress = redriven.length === 0 ? null : this.#redelivery.progress()
    this.#readIfDue()
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
    this.#isReading = true
    try {
      for (;;) {
        const { body } = await read('listEvents', { after: this.#after, types: [...DELIVERY_EVENTS], limit: PAGE_EVENTS })
        if (redelivery !== this.#redelivery) return
        for (const event of body.items) redelivery.take(event)
        const isEnd = body.nextAfter >= body.head || body.nextAfter <= this.#after
        this.#after = Math.max(this.#after, body.nextAfter)
        if (isEnd) break
      }
      this.progress = redelivery.progress()
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      // It is read again when the log grows.
    } finally {
      this.#isReading = false
    }
  }
}
