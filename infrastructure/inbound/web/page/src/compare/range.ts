// The range of time of the view Changes: as people write it, and as the server is asked for it.

import { instantBefore, readMoment, type MomentContext } from '../moment/moment_text'

/** Presets of the start of the range. An empty one is the server's default. */
export const PRESETS = [
  { name: 'Last 15 min', from: '15m' },
  { name: 'Last hour', from: '1h' },
  { name: 'Today', from: 'today' },
  { name: 'Since yesterday 18:00', from: 'yesterday 18:00' },
  { name: 'Last 24 hours', from: '' },
] as const

export interface ReadRange {
  /** The moments for the server; null is its default, or the end of the log. */
  from: string | null
  to: string | null
  problem: string | null
}

/**
 * Read both ends of the range.
 *
 * @param isLive Whether `context.now` is the server's now. In the past a time ago is an instant before
 *   the moment that is shown.
 */
export function readRange(from: string, to: string, context: MomentContext, isLive: boolean): ReadRange {
  const [start, end] = [from, to].map((text) => (text === '' ? { at: null, problem: null } : readMoment(text, context))) as [Read, Read]
  const problem = start.problem ?? end.problem
  if (problem !== null) return { from: null, to: null, problem }
  const instantOf = (at: string | null): string | null => (isLive || at === null ? at : (instantBefore(at, context.now) ?? at))
  return { from: instantOf(start.at), to: instantOf(end.at), problem: null }
}

type Read = ReturnType<typeof readMoment>
