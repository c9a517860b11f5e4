// Bars of all runs, summed by the session at the top of each tree.

import type { RunBarView } from '../api/shapes'

export interface Root {
  sessionKey: string
  runs: number
  /** Runs that are not over. */
  active: number
  running: number
  failed: number
  refused: number
  /** Runs that have ended; with each of them the cost may grow. */
  ended: number
  /** The newest event that brought a run to a stage: its instant and its position. */
  lastAt: string
  lastPosition: number
}

/** Return the roots of these runs: those with runs that are not over first, the newest event first among them. */
export function rootsOf(bars: RunBarView[]): Root[] {
  const rootBySession = new Map<string, string>()
  const roots = new Map<string, Root>()
  for (const bar of [...bars].sort((one, other) => one.depth - other.depth)) {
    const key = rootBySession.get(bar.requesterSessionKey) ?? bar.requesterSessionKey
    if (bar.childSessionKey !== null) rootBySession.set(bar.childSessionKey, key)
    let root = roots.get(key)
    if (root === undefined) {
      root = { sessionKey: key, runs: 0, active: 0, running: 0, failed: 0, refused: 0, ended: 0, lastAt: '', lastPosition: 0 }
      roots.set(key, root)
    }
    root.runs += 1
    if (bar.status === 'running') root.running += 1
    if (bar.status === 'failed') root.failed += 1
    if (bar.status === 'refused') root.refused += 1
    else if (bar.outcome === null) root.active += 1
    else root.ended += 1
    const last = bar.stages.at(-1)
    if (last !== undefined && last.position > root.lastPosition) {
      root.lastAt = last.at
      root.lastPosition = last.position
    }
  }
  return [...roots.values()].sort((one, other) => Number(other.active > 0) - Number(one.active > 0) || other.lastPosition - one.lastPosition)
}

/** Return the roots in the order of these keys, and those without a key last. */
export function inOrder(roots: Root[], keys: string[]): Root[] {
  const places = new Map(keys.map((key, place) => [key, place]))
  return [...roots].sort((one, other) => (places.get(one.sessionKey) ?? keys.length) - (places.get(other.sessionKey) ?? keys.length))
}
