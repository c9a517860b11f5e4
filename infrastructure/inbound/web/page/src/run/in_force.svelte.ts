// What the configuration in force now says of a spawn that was refused under an earlier one.

import { lines } from '../api/lines'
import { RequestFailed } from '../api/requests'
import type { Answers, RuleView, WhatIfVerdictView } from '../api/shapes'
import { Asked } from '../moment/asked.svelte'
import { moment } from '../moment/moment.svelte'
import { session } from '../session.svelte'
import { valueInForce } from './way_out'

type Refused = Pick<Answers['getRun'], 'runId' | 'stages'>

export class InForceNow {
  /** The same decision, made again; null if it is not known. */
  verdict = $state.raw<WhatIfVerdictView | null>(null)
  readonly #refusal: () => RuleView
  readonly #revisions: Asked<'listRevisions'>
  readonly #content: Asked<'getRevision'>

  constructor(run: () => Refused, refusal: () => RuleView) {
    this.#refusal = refusal
    const mayAsk = $derived(moment.isLive && session.seesEverything && session.may('content'))
    this.#revisions = new Asked('listRevisions', () => (mayAsk ? { limit: 1 } : null))
    this.#content = new Asked('getRevision', () => (this.revision === null ? null : { revision: this.revision }), { isFollowing: () => false })
    const runId = $derived(run().runId)
    const from = $derived(run().stages[0]?.position)
    const to = $derived(refusal().position)
    $effect(() => {
      const config = this.#content.value?.revision === this.revision ? this.#content.value?.content : null
      this.verdict = null
      // Whether a place is free is a matter of now, and not of the configuration.
      if (refusal().rule === 'active_children') return undefined
      if (config === null || typeof config !== 'object' || from === undefined || to === null) return undefined
      const ending = new AbortController()
      const range = { from: `pos:${from}`, to: `pos:${to}` }
      void this.#decide({ config: config as Record<string, unknown>, ...range, filter: { runId } }, ending.signal)
      return () => ending.abort()
    })
  }

  /** The revision in force; null if it is the one of the refusal, or not known. */
  get revision(): number | null {
    const revision = moment.isLive ? this.#revisions.value?.items[0]?.revision : undefined
    return revision === undefined || revision === this.#refusal().configRevision ? null : revision
  }

  /** The value of the setting that the rule compared; undefined if there is none. */
  get value(): unknown {
    return this.revision !== null && this.#content.value?.revision === this.revision
      ? valueInForce(this.#refusal(), this.#content.value.content) : undefined
  }

  async #decide(body: Parameters<typeof lines<'whatIf'>>[2], signal: AbortSignal): Promise<void> {
    try {
      for await (const values of lines('whatIf', {}, body, signal)) {
        this.verdict = values.find((line) => 'verdict' in line) ?? this.verdict
      }
    } catch (error) {
      // Without a verdict the page shows the value alone.
      if (!signal.aborted && !(error instanceof RequestFailed)) throw error
    }
  }
}
