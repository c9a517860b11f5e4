// One question of what another configuration would have decided, and what came of it so far. It
// stays while one looks at a run, and goes with the token and with the log.

import { lines } from '../api/lines'
import { RequestFailed } from '../api/requests'
import type { ProgressCountView, TotalsView, WhatIfBody } from '../api/shapes'
import { moment } from '../moment/moment.svelte'
import { session } from '../session.svelte'
import { KeptRows, type DecidedRow } from './decided'

const SHOWN_EVERY_MS = 250

class Trial {
  /** What was asked; null: nothing yet. */
  asked = $state.raw<WhatIfBody | null>(null)
  rows = $state.raw<DecidedRow[]>([])
  /** How many there were beyond those that are kept. */
  left = $state(0)
  progress = $state.raw<ProgressCountView | null>(null)
  totals = $state.raw<TotalsView | null>(null)
  problem = $state.raw<RequestFailed | null>(null)
  state = $state<'none' | 'asking' | 'whole' | 'cancelled' | 'broken'>('none')
  /** The text in the editor; null while nobody has changed it. */
  draft = $state<string | null>(null)

  #ending: AbortController | null = null
  #kept = new KeptRows()
  #whose: unknown = null

  /** Forgets all when it is of another token or another log. */
  keepOwn(): void {
    const whose = this.#owner()
    if (this.#whose === whose) return
    this.#whose = whose
    this.cancel()
    this.#forget()
    this.state = 'none'
    this.asked = null
    this.draft = null
  }

  cancel(): void {
    if (this.state === 'asking') {
      this.state = 'cancelled'
      this.#show()
    }
    this.#ending?.abort()
    this.#ending = null
  }

  async ask(body: WhatIfBody): Promise<void> {
    this.cancel()
    this.keepOwn()
    const whose = this.#whose
    const ending = new AbortController()
    this.#ending = ending
    this.#forget()
    this.asked = body
    this.state = 'asking'
    const kept = this.#kept
    let shownAt = 0
    try {
      for await (const values of lines('whatIf', {}, body, ending.signal)) {
        if (ending.signal.aborted) return
        if (this.#owner() !== whose) return this.keepOwn()
        for (const line of values) {
          if ('verdict' in line) kept.take(line)
          else if ('progress' in line) this.progress = line.progress
          else if ('totals' in line) this.totals = line.totals
          else this.problem = new RequestFailed(200, 'unknown', line.failure.detail)
        }
        if (performance.now() - shownAt > SHOWN_EVERY_MS) {
          shownAt = performance.now()
          this.#show()
        }
      }
      this.#show()
      if (this.totals === null) this.problem ??= new RequestFailed(200, 'unknown', 'The answer broke off before its end; ask again.')
      this.state = this.totals === null ? 'broken' : 'whole'
    } catch (error) {
      if (ending.signal.aborted) return
      if (!(error instanceof RequestFailed)) throw error
      this.#show()
      this.problem = error
      this.state = 'broken'
    }
  }

  #owner(): unknown {
    return session.caller === null ? null : JSON.stringify([session.caller, moment.logs])
  }

  #show(): void {
    this.rows = this.#kept.rows.slice()
    this.left = this.#kept.left
  }

  #forget(): void {
    this.#kept = new KeptRows()
    this.#show()
    this.progress = null
    this.totals = null
    this.problem = null
  }
}

export const trial = new Trial()
