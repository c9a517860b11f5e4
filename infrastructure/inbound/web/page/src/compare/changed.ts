// Items of a diff of two moments, as they are shown.

import type { DiffItemView } from '../api/shapes'
import { ruleName } from '../parts/names'

export type Verdict = 'added' | 'removed' | 'changed'
export interface ChangedItem extends DiffItemView {
  verdict: Verdict
  /** The whole value of an item that was added. */
  whole: Record<string, unknown> | null
}

interface Page {
  added: DiffItemView[]
  removed: DiffItemView[]
  changed: DiffItemView[]
}

const VERDICTS: Verdict[] = ['added', 'removed', 'changed']

/** The items of a page: first those that were added, then removed, then changed. */
export function itemsOf(page: Page): ChangedItem[] {
  return VERDICTS.flatMap((verdict) => page[verdict].map((item) => ({ ...item, verdict, whole: wholeOf(item) })))
}

function wholeOf(item: DiffItemView): Record<string, unknown> | null {
  const value = item.patch.find((one) => one.path === '')?.value
  return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : null
}

/** A few words about an item that was added. */
export function wordsOf(whole: Record<string, unknown>): string {
  return ['status', 'agentId', 'requestedAgentId', 'rule', 'error', 'task', 'taskPreview', 'role']
    .map((name) => (name === 'rule' && typeof whole['rule'] === 'string' ? ruleName(whole['rule']) : whole[name]))
    .filter((value): value is string => typeof value === 'string')
    .filter((value, index, all) => all.indexOf(value) === index)
    .map((value) => value.slice(0, 200))
    .join(', ')
}
