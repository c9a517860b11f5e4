// Verdicts as the page keeps them: the first ones, and the beginning of their texts.

import type { DifferenceView, TotalsView, WhatIfVerdictView } from '../api/shapes'
import { ruleName } from '../parts/names'
import { count } from '../parts/text'

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
  /** The first difference in words, or what is not on record. */
  first: string
  /** Facts that are assumed to be in order; empty if there are none. */
  assumed: string
  /** The JSON pointer of the first difference; empty if there is none. */
  pointer: string
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
    assumed: view.assumed.length === 0 ? '' : `taken to be in order: ${view.assumed.join(', ')}`.slice(0, TEXT_CHARS_MAX),
    pointer: view.difference?.field ?? '',
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

/** Names of fields whose pointers are not words. */
const FIELDS: Record<string, string> = {
  '/agentId': 'agent', '/modelApplied': 'model applied', '/controlScope': 'control scope', '/workspaceDir': 'workspace',
  '/runTimeoutSeconds': 'time limit (s)', '/tools/allow': 'allowed tools', '/tools/deny': 'denied tools',
  '/authProfiles': 'credentials', '/archiveAfterMinutes': 'archived after (min)', '/idleHours': 'idle (h)', '/maxAgeHours': 'greatest age (h)',
  '/prices/input': 'price of input', '/prices/output': 'price of output', '/maxSpawnDepth': 'maximum depth', '/contextScripts': 'context scripts',
  '/contextPreamble/keptCharacters': 'characters of context', '/directDelivery': 'direct delivery', '/announcement/origin': 'announced to',
}

function firstOf(view: WhatIfVerdictView): string {
  const parts: string[] = []
  if (view.difference !== null) parts.push(differenceText(view.difference))
  if (view.text !== null) parts.push(view.text)
  if (view.missing.length > 0) parts.push(`not on record: ${view.missing.join(', ')}`)
  return parts.join('; ')
}

/** `refused: too deep → accepted`, `maximum depth: 2 → 3`. */
function differenceText({ field, recorded, decided }: DifferenceView): string {
  const [before, after] = [recorded, decided].map((value) => (field !== '/rule' ? reads(value) : value === null ? 'accepted' : `refused: ${ruleName(String(value))}`))
  if (field === '/rule') return `${before} → ${after}`
  if (before === after) return `${fieldName(field)}: changed`
  return `${fieldName(field)}: ${before} → ${after}${field.startsWith('/prompt/') ? ' bytes' : ''}`
}

function fieldName(field: string): string {
  const [text, source] = /^\/prompt\/(\w+)\/(.*)$/.exec(field)?.slice(1) ?? []
  if (source !== undefined) return `${text === 'message' ? 'message' : 'system prompt'}, from ${source}`
  return FIELDS[field] ?? field.slice(1).replaceAll('/', ', ')
}

function reads(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (value === null || value === '' || (Array.isArray(value) && value.length === 0)) return 'none'
  if (Array.isArray(value)) return value.map(reads).join(', ').slice(0, TEXT_CHARS_MAX)
  const { script, bytes } = Object(value) as { script?: unknown; bytes?: unknown }
  if (typeof script === 'string') return `${script} (${count(Number(bytes))} bytes)`
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, TEXT_CHARS_MAX)
}

export type Verdict = WhatIfVerdictView['verdict']
const ORDER: Verdict[] = [
  'newly-refused', 'newly-allowed', 'different-agent', 'different-model', 'different-plan', 'different-context',
  'different-announcement', 'not-replayable', 'same',
]
/** The name of a verdict for reading: `newly allowed`. */
export function verdictName(verdict: Verdict): string {
  return verdict === 'same' ? 'unchanged' : verdict.replaceAll('-', ' ')
}

/** The rows by verdict, refusals and permissions that are new first; within a verdict by position. */
export function inOrder(rows: DecidedRow[]): DecidedRow[] {
  const places = new Map(ORDER.map((verdict, place) => [verdict, place]))
  return [...rows].sort((one, other) => places.get(one.verdict)! - places.get(other.verdict)! || one.position - other.position)
}

/** All verdicts of decisions that change. */
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
