// Sessions that requested runs, as the way to their shared context.

import type { RunSummary } from '../api/shapes'

/** A session that requested runs, among the runs that were read. */
export interface Requester {
  key: string
  runs: number
  /** When its newest run was requested. */
  lastAt: string
}

/** Return the requesters of runs, the one of the newest run first. `runs` are the newest first. */
export function latestRequesters(runs: Pick<RunSummary, 'requesterSessionKey' | 'createdAt'>[]): Requester[] {
  const found = new Map<string, Requester>()
  for (const { requesterSessionKey: key, createdAt } of runs) {
    const known = found.get(key)
    if (known === undefined) found.set(key, { key, runs: 1, lastAt: createdAt })
    else known.runs += 1
  }
  return [...found.values()]
}
