// How runs ended: one order, and one meaning of "failed" (its status alone), for all views.

import type { State } from './states'
import { count } from './text'

/** Statuses of runs that are over, in the order of figures. */
const OVER: readonly State[] = ['done', 'failed', 'timeout', 'stopped', 'unknown', 'refused']
/** Statuses with a figure even if no run has them. */
const ALWAYS: readonly State[] = ['done', 'failed', 'refused']
/** Statuses of failures: the server groups the runs that have them by cause. */
const FAILURES = { failed: 'failed', timeout: 'timed out', unknown: 'unknown' } as const

type Counts = Record<string, number>

export interface Failure {
  status: keyof typeof FAILURES
  /** `4 timed out` */
  text: string
}

/** Statuses of runs that ended, so without refused ones. */
export const ENDED = OVER.filter((status) => status !== 'refused')

/** Return the statuses that have a figure. */
export function figuresOf(counts: Counts): State[] {
  return OVER.filter((status) => ALWAYS.includes(status) || (counts[status] ?? 0) > 0)
}

/** Return `38 failed` and `4 timed out`; nothing if no run failed. */
export function failuresOf(counts: Counts): Failure[] {
  return (Object.keys(FAILURES) as Failure['status'][])
    .filter((status) => (counts[status] ?? 0) > 0)
    .map((status) => ({ status, text: `${count(counts[status]!)} ${FAILURES[status]}` }))
}

/** Return `38 failed, 4 timed out`. */
export function failuresText(counts: Counts): string {
  return failuresOf(counts).map(({ text }) => text).join(', ')
}
