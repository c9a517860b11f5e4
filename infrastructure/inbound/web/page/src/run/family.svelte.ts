// The family of a run: the run that requested it, and the runs that it requested.

import type { Answers, RunSummary } from '../api/shapes'
import { Asked } from '../moment/asked.svelte'
import { session } from '../session.svelte'

const CHILDREN_MAX = 50
const OVER: RunSummary['status'][] = ['done', 'failed', 'timeout', 'stopped', 'unknown', 'refused']

type Member = Pick<Answers['getRun'], 'parentRunId' | 'childSessionKey'>

/** Whether a run can still do something. */
export function isActive(run: Pick<RunSummary, 'status'>): boolean {
  return !OVER.includes(run.status)
}

export class Family {
  readonly #run: () => Member | null
  readonly #parent: Asked<'getRun'>
  readonly #children: Asked<'listRuns'>

  constructor(run: () => Member | null) {
    this.#run = run
    const session_ = $derived(run()?.childSessionKey ?? null)
    this.#parent = new Asked('getRun', () => (this.parentId === null || !session.seesEverything ? null : { runId: this.parentId }))
    this.#children = new Asked('listRuns', () => (session_ === null ? null : { requester: session_, limit: CHILDREN_MAX, order: 'asc' as const }))
  }

  get parentId(): string | null {
    return this.#run()?.parentRunId ?? null
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
