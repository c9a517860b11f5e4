// Two sides next to each other, member by member.

import type { ComparedDecisionView, ComparedPartView } from '../api/shapes'

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

/** Members that name a run or its session, or follow from a text beside them: two runs always differ in them. */
const NAMES = new Set(['requesterSessionKey', 'label', 'taskBytes'])

/** The members that differ, those that only name a run left out. */
export function realDifferences(members: Member[]): Member[] {
  return members.filter((one) => !one.isSame && !NAMES.has(one.name))
}

/** Whether a part of a prompt only names the run: its label and its sessions. */
export function isNaming(part: Pick<ComparedPartView, 'of' | 'source' | 'verdict'>): boolean {
  return part.of === 'systemPrompt' && part.source === 'session' && part.verdict === 'different'
}

/** Whether a rule was decided for both runs: after a refusal the rules are not. */
export function isJudgedForBoth({ left, right }: Pick<ComparedDecisionView, 'left' | 'right'>): boolean {
  return [left, right].every((side) => side !== null && side.result !== 'not_judged')
}

/** A member's value for reading; nothing for what is not there. */
export function reads(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** As text, whatever the order of its members. */
function written(value: unknown): string {
  return JSON.stringify(value ?? null, (_, one: unknown) =>
    one !== null && typeof one === 'object' && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  )
}

/** Characters of two texts that are shown before their first difference. */
const BEFORE_CHARS = 60

/** Return an excerpt of two texts in which they differ: from shortly before their first difference on, with
 * `…` for what is left out. */
export function differingExcerpts(left: string, right: string, charsMax: number): [string, string] {
  const [one, other] = [[...left], [...right]]
  let same = 0
  while (same < one.length && one[same] === other[same]) same += 1
  const isWhole = Math.max(one.length, other.length) <= charsMax
  const from = isWhole || same <= BEFORE_CHARS ? 0 : same - BEFORE_CHARS
  const cut = (text: string[]): string => `${from > 0 ? '… ' : ''}${text.slice(from, from + charsMax).join('')}${text.length > from + charsMax ? ' …' : ''}`
  return [cut(one), cut(other)]
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
