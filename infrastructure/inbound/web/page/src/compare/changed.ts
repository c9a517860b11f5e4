// What a diff of two moments says, as it is shown.

import type { DiffItemView } from '../api/shapes'

export type Verdict = 'added' | 'removed' | 'changed'
export interface ChangedItem extends DiffItemView {
  verdict: Verdict
  /** What it was or is, where it was not there on the other side. */
  whole: Record<string, unknown> | null
}

interface Page {
  added: DiffItemView[]
  removed: DiffItemView[]
  changed: DiffItemView[]
}

const VERDICTS: Verdict[] = ['added', 'removed', 'changed']

/** The items of a page: first who came, then who is not there, then who changed. */
export function itemsOf(page: Page): ChangedItem[] {
  return VERDICTS.flatMap((verdict) => page[verdict].map((item) => ({ ...item, verdict, whole: wholeOf(item) })))
}

function wholeOf(item: DiffItemView): Record<string, unknown> | null {
  const value = item.patch.find((one) => one.path === '')?.value
  return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : null
}

/** A few words about one that came to be. */
export function wordsOf(whole: Record<string, unknown>): string {
  return ['status', 'agentId', 'requestedAgentId', 'rule', 'error', 'task', 'taskPreview', 'role']
    .map((name) => whole[name])
    .filter((value): value is string => typeof value === 'string')
    .filter((value, index, all) => all.indexOf(value) === index)
    .map((value) => value.slice(0, 200))
    .join(', ')
}

const BEFORE_POSITIONS = 200

/** A moment somewhat before a position. */
export function beforePosition(position: number): string {
  return `pos:${Math.max(0, position - BEFORE_POSITIONS)}`
}

/** The position that `pos:N` names; null for a moment of another kind. */
export function positionNamed(at: string): number | null {
  return /^pos:[0-9]{1,15}$/.test(at) ? Number(at.slice(4)) : null
}
