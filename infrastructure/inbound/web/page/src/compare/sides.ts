// Two sides next to each other, member by member.

import { count, dollars } from '../parts/text'

export interface Member {
  name: string
  left: unknown
  right: unknown
  isSame: boolean
}

type Side = Record<string, unknown>

/** The members of both, in the order of the left, those of the right alone last. `erased` are those
 * whose texts are gone: they may have differed. */
export function membersOf(left: Side, right: Side, erased: string[] = []): Member[] {
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].map((name) => ({
    name,
    left: left[name],
    right: right[name],
    isSame: !erased.includes(name) && written(left[name]) === written(right[name]),
  }))
}

/** A member's value for reading: usage and cost as figures; nothing for what is not there. */
export function reads(value: unknown, name = ''): string {
  if (value === undefined) return ''
  if (name === 'estimatedCostUsd' && typeof value === 'number') return dollars(value)
  if (name === 'usage' && value !== null && typeof value === 'object') return usageText(value as Side)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function usageText(usage: Side): string {
  const { inputTokens, outputTokens, ...others } = usage
  const figures = [[inputTokens, 'tokens in'], [outputTokens, 'out']].flatMap(([of, unit]) => (typeof of === 'number' ? [`${count(of)} ${unit as string}`] : []))
  const rest = Object.entries(others).filter(([name, value]) => name !== 'totalTokens' && value !== null)
  return [...figures, ...rest.map(([name, value]) => `${name}: ${reads(value, name)}`)].join(', ')
}

/** As text, whatever the order of its members. */
function written(value: unknown): string {
  return JSON.stringify(value ?? null, (_, one: unknown) =>
    one !== null && typeof one === 'object' && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  )
}

export interface DiffLine {
  kind: 'added' | 'removed' | 'place' | 'kept'
  text: string
}

/** A unified diff, line by line, without the two lines that name the files. */
export function linesOf(diff: string): DiffLine[] {
  const lines = diff.replace(/\n$/, '').split('\n')
  const first = lines.findIndex((line) => line.startsWith('@@'))
  return lines.slice(Math.max(first, 0)).map((text) => ({ kind: KINDS[text[0] ?? ''] ?? 'kept', text }))
}

const KINDS: Record<string, DiffLine['kind']> = { '+': 'added', '-': 'removed', '@': 'place' }
