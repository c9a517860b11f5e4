// Which runs of a family are below one session of it.

import type { RunBarView } from '../api/shapes'

type Descended = Pick<RunBarView, 'depth' | 'requesterSessionKey' | 'childSessionKey'>

/** The runs that the session, and those below it, asked for, in the order in which they are given. */
export function runsBelow<Run extends Descended>(runs: Run[], sessionKey: string): Run[] {
  const sessions = new Set([sessionKey])
  const found = new Set<Run>()
  for (const run of [...runs].sort((one, other) => one.depth - other.depth)) {
    if (!sessions.has(run.requesterSessionKey)) continue
    found.add(run)
    if (run.childSessionKey !== null) sessions.add(run.childSessionKey)
  }
  return runs.filter((run) => found.has(run))
}
