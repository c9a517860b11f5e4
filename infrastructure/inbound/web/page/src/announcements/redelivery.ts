// What became of announcements that were sent again, from the events about their deliveries.

import type { EventView, RedrivenItem } from '../api/shapes'
import { count, counted } from '../parts/text'

type Attempt = Pick<EventView, 'type' | 'runId' | 'payload'>

/** Events about deliveries: one is sent again, an attempt was made, the server gave up. */
export const DELIVERY_EVENTS = ['EffectRedriven', 'EffectAttempted', 'EffectParked'] as const

interface Way {
  state: 'due' | 'delivered' | 'failed'
  /** The cause of the last attempt that failed, such as `HTTP 500`. */
  cause: string | null
}

export interface Progress {
  announcements: number
  delivered: number
  failed: number
  due: number
  /** How many of `due` have an attempt that failed. */
  retried: number
  /** Causes of the attempts that failed, the most frequent first. */
  causes: string[]
}

const NO_ANSWER = 'no answer'

/** The deliveries of announcements that were sent again. */
export class Redelivery {
  /** The position after which the record is read for them. */
  position = 0
  readonly #runs = new Map<string, Map<string, Way>>()

  /** Add what was sent again after a position. What is still on its way is counted with it. */
  add(redriven: RedrivenItem[], after: number): void {
    const isAllTold = this.progress().due === 0
    if (isAllTold) this.#runs.clear()
    // Its events may be among those that were read for the earlier ones: they are read once more.
    this.position = isAllTold ? after : Math.min(this.position, after)
    for (const { runId, webhooks } of redriven) {
      const ways = this.#runs.get(runId) ?? new Map<string, Way>()
      for (const webhook of webhooks) ways.set(webhook, { state: 'due', cause: null })
      this.#runs.set(runId, ways)
    }
  }

  /** Take an event. Those from before a delivery was sent again are without effect, since its
   * `EffectRedriven` comes after them. */
  take({ type, runId, payload }: Attempt): void {
    const { kind, name, statusCode, error, retryAfterSeconds } = payload
    const way = typeof name === 'string' ? this.#runs.get(runId ?? '')?.get(name) : undefined
    if (way === undefined || kind !== 'webhook') return
    if (type === 'EffectRedriven') Object.assign(way, { state: 'due', cause: null })
    else if (type === 'EffectParked') way.state = 'failed'
    else if ((error ?? null) === null && (retryAfterSeconds ?? null) === null) Object.assign(way, { state: 'delivered', cause: null })
    else way.cause = typeof statusCode === 'number' ? `HTTP ${statusCode}` : NO_ANSWER
  }

  progress(): Progress {
    const sum: Progress = { announcements: this.#runs.size, delivered: 0, failed: 0, due: 0, retried: 0, causes: [] }
    const causes = new Map<string, number>()
    for (const ways of this.#runs.values()) {
      const all = [...ways.values()]
      const state = all.some((way) => way.state === 'due') ? 'due' : all.some((way) => way.state === 'failed') ? 'failed' : 'delivered'
      sum[state] += 1
      if (state === 'due' && all.some((way) => way.cause !== null)) sum.retried += 1
      for (const { cause } of all) if (cause !== null) causes.set(cause, (causes.get(cause) ?? 0) + 1)
    }
    sum.causes = [...causes].sort(([, one], [, other]) => other - one).map(([cause]) => cause)
    return sum
  }
}

const CAUSES_MAX = 3

/** Return how far it is: `2 announcements sent again: 1 delivered, 1 parked again (HTTP 500).` */
export function progressText({ announcements, delivered, failed, due, retried, causes }: Progress): string {
  const why = causes.length === 0 ? '' : ` (${causes.slice(0, CAUSES_MAX).join(', ')}${causes.length > CAUSES_MAX ? ' …' : ''})`
  const toGo = `${count(due)} being delivered${retried === 0 ? '' : `, ${count(retried)} of them after a failed attempt${failed > 0 ? '' : why}`}`
  const parts = [`${count(delivered)} delivered`, ...(failed > 0 ? [`${count(failed)} parked again${why}`] : []), ...(due > 0 ? [toGo] : [])]
  return `${counted(announcements, 'announcement')} sent again: ${parts.join(', ')}.`
}
