// Verdicts as the page keeps them: the first ones, and the beginning of their texts.

import type { TotalsView, WhatIfVerdictView } from '../api/shapes'

export const ROWS_MAX = 10_000
const TEXT_CHARS_MAX = 300

export interface DecidedRow {
  key: string
  runId: string
  position: number
  kind: WhatIfVerdictView['kind']
  agentId: string
  label: string
  verdict: WhatIfVerdictView['verdict']
  rule: string
  configRevision: number
  /** What would be otherwise first, or why it cannot be said. */
  first: string
}

export function rowOf(view: WhatIfVerdictView): DecidedRow {
  return {
    key: String(view.position),
    runId: view.runId,
    position: view.position,
    kind: view.kind,
    agentId: view.agentId ?? '',
    label: view.label ?? '',
    verdict: view.verdict,
    rule: view.rule ?? '',
    configRevision: view.configRevision,
    first: firstOf(view).slice(0, TEXT_CHARS_MAX),
  }
}

/** The rows that are kept, and how many are not. */
export class KeptRows {
  readonly rows: DecidedRow[] = []
  left = 0

  take(view: WhatIfVerdictView): void {
    if (this.rows.length < ROWS_MAX) this.rows.push(rowOf(view))
    else this.left += 1
  }
}

function firstOf(view: WhatIfVerdictView): string {
  const parts: string[] = []
  if (view.difference !== null) parts.push(`${view.difference.field}: ${reads(view.difference.recorded)} → ${reads(view.difference.decided)}`)
  if (view.text !== null) parts.push(view.text)
  if (view.missing.length > 0) parts.push(`not on record: ${view.missing.join(', ')}`)
  if (view.assumed.length > 0) parts.push(`taken to be in order: ${view.assumed.join(', ')}`)
  return parts.join('; ')
}

const reads = (value: unknown): string => JSON.stringify(value ?? null).slice(0, TEXT_CHARS_MAX)

export type Verdict = WhatIfVerdictView['verdict']
const ORDER: Verdict[] = [
  'newly-refused', 'newly-allowed', 'different-agent', 'different-model', 'different-plan', 'different-context',
  'different-announcement', 'not-replayable', 'same',
]
/** All verdicts of decisions that change. */
/** The name of a verdict for reading: `newly allowed`. */
export function verdictName(verdict: Verdict): string {
  return verdict.replaceAll('-', ' ')
}

/** The rows by verdict, refusals and permissions that are new first; within a verdict by position. */
export function inOrder(rows: DecidedRow[]): DecidedRow[] {
  const places = new Map(ORDER.map((verdict, place) => [verdict, place]))
  return [...rows].sort((one, other) => places.get(one.verdict)! - places.get(other.verdict)! || one.position - other.position)
}

export const CHANGED = ORDER.filter((one) => one !== 'same')

export interface Matrix {
  verdicts: { name: Verdict; total: number }[]
  agents: MatrixLine[]
  rules: MatrixLine[]
}

export interface MatrixLine {
  name: string
  counts: number[]
  /** How many decisions change. */
  changed: number
}

const LINES_MAX = 100

/** The totals as a matrix: a column for each verdict that there is. */
export function matrixOf(totals: TotalsView): Matrix {
  const verdicts = ORDER.map((name) => ({ name, total: totals.byVerdict[name] ?? 0 })).filter((one) => one.total > 0)
  const lines = (of: Record<string, Record<string, number>>): MatrixLine[] =>
    Object.entries(of)
      .map(([name, counts]) => ({ name, counts: verdicts.map((one) => counts[one.name] ?? 0), changed: sumOf(counts) - (counts['same'] ?? 0) }))
      .sort((one, other) => other.changed - one.changed || (one.name < other.name ? -1 : 1))
      .slice(0, LINES_MAX)
  return { verdicts, agents: lines(totals.byAgent), rules: lines(totals.byRule) }
}

const sumOf = (counts: Record<string, number>): number => Object.values(counts).reduce((sum, one) => sum + one, 0)
