// The family of a run: the run that requested it, and the runs that it requested.

import type { RunSummary } from '../api/shapes'
import { Asked } from '../moment/asked.svelte'
import { session } from '../session.svelte'

const CHILDREN_MAX = 50
const BARS_MAX = 200
const OVER: RunSummary['status'][] = ['done', 'failed', 'timeout', 'stopped', 'unknown', 'refused']

type Member = Pick<RunSummary, 'runId' | 'requesterSessionKey' | 'childSessionKey' | 'depth' | 'stages'>

/** Whether a run can still do something. */
export function isActive(run: Pick<RunSummary, 'status'>): boolean {
  return !OVER.includes(run.status)
}

export class Family {
  readonly #run: () => Member | null
  // The bar of the run names its parent. At the position of the request few bars are there.
  readonly #bars: Asked<'listTimeline'>
  readonly #parent: Asked<'getRun'>
  readonly #children: Asked<'listRuns'>

  constructor(run: () => Member | null) {
    this.#run = run
    const requester = $derived(run()?.requesterSessionKey ?? null)
    const requested = $derived(run()?.stages[0]?.position ?? null)
    const isChild = $derived((run()?.depth ?? 0) > 1)
    const session_ = $derived(run()?.childSessionKey ?? null)
    this.#bars = new Asked(
      'listTimeline',
      () => (requester === null || requested === null || !isChild ? null : { requester, from: `pos:${requested - 1}`, to: `pos:${requested}`, limit: BARS_MAX, buckets: 1 }),
      { isFollowing: () => false, isAsOf: false },
    )
    this.#parent = new Asked('getRun', () => (this.parentId === null || !session.seesEverything ? null : { runId: this.parentId }))
    this.#children = new Asked('listRuns', () => (session_ === null ? null : { requester: session_, limit: CHILDREN_MAX, order: 'asc' as const }))
  }

  get parentId(): string | null {
    const runId = this.#run()?.runId
    return this.#bars.value?.items.find((one) => one.runId === runId)?.parentRunId ?? null
  }

  /** The parent as far as the token sees it. */
  get parent(): Pick<RunSummary, 'runId' | 'label' | 'agentId' | 'status'> | null {
    return this.parentId !== null && this.#parent.value?.runId === this.parentId ? this.#parent.value : null
  }

  get children(): RunSummary[] {
    return this.#run()?.childSessionKey ? (this.#children.value?.items ?? []) : []
  }

  /** Whether there are more children than these. */
  get hasMore(): boolean {
    return this.#children.value?.nextCursor != null
  }
}
