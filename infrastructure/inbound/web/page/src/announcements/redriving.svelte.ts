// Sends every parked announcement again, a hundred with each request, until all were sent or the user stops it.

import { Sending } from '../api/sending.svelte'
import type { RedriveRefusal } from '../api/shapes'
import { counted } from '../parts/text'
import type { Following } from './following.svelte'

/** Each request sends up to 100 again. */
const REQUESTS_MAX = 20

export class Redriving {
  /** Whether requests are on their way. */
  isBusy = $state(false)
  /** How many were sent again or refused so far. */
  sent = $state(0)
  /** Of how many, such as `284` or `500+`. */
  number = $state('')
  /** Why something was not sent again; empty if all were. */
  said = $state('')
  refused = $state.raw<RedriveRefusal[]>([])

  readonly #sending = new Sending()
  readonly #following: Following
  #isStopping = false

  constructor(following: Following) {
    this.#following = following
  }

  /** Forget what was said of the last ones. */
  clear(): void {
    this.sent = 0
    this.said = ''
    this.refused = []
  }

  /** Send again what was parked up to a position: what fails again is parked later, and is not sent twice. Return
   * why nothing was sent, or null once the first were; the others are sent after that. */
  async start(reason: string, number: string, until: number): Promise<string | null> {
    this.clear()
    this.number = number
    this.isBusy = true
    this.#isStopping = false
    const after = await this.#send(reason, 0, until)
    if (this.sent === 0) {
      this.isBusy = false
      return this.#sending.said
    }
    void this.#goOn(reason, after, until)
    return null
  }

  /** Send no further requests. */
  stop(): void {
    this.#isStopping = true
  }

  async #goOn(reason: string, first: number | null, until: number): Promise<void> {
    let after = first
    for (let request = 1; request < REQUESTS_MAX && after !== null && !this.#isStopping; request += 1) after = await this.#send(reason, after, until)
    const { said, problem } = this.#sending
    this.said = [
      this.refused.length === 0 ? '' : `${counted(this.refused.length, 'announcement')} refused: the texts were erased, so no reason can be recorded.`,
      problem === null || problem.code === 'no_announcement' ? '' : said,
      after === null ? '' : this.#isStopping ? 'Stopped: the others stay parked.' : 'More are parked: redeliver again.',
    ].filter(Boolean).join(' ')
    this.isBusy = false
  }

  /** Send the next again. Return the position after which more are parked, or null. */
  async #send(reason: string, after: number, until: number): Promise<number | null> {
    let more: number | null = null
    await this.#following.send(async () => {
      const answer = await this.#sending.send('redriveAnnouncements', {}, { reason, after, until })
      if (answer === null) return []
      more = answer.moreAfter
      this.refused = [...this.refused, ...answer.refused]
      this.sent += answer.redriven.length + answer.refused.length
      return answer.redriven
    })
    return more
  }
}
