// Suggestions of the search field: names of tokens, and existing values.

import { ruleName, RULES } from '../parts/names'
import { STATES } from '../parts/states'
import { count } from '../parts/text'
import { isList, pieces, prefixOf, quotedValue, TOKENS, TOKEN_NAMES, type TokenName } from './run_query'

/** Existing values, with the number of runs that have each. */
export interface Known {
  statuses: Record<string, number>
  agents: Record<string, number>
  rules: Record<string, number>
  /** Values of the loaded rows. */
  labels: string[]
  requesters: string[]
  causes: string[]
}

export interface Suggestion {
  /** The label, which is also the text of the token. */
  text: string
  hint: string
  /** True if the suggestion completes the token. */
  isWhole: boolean
}

export interface Suggestions {
  /** The part of the text that a suggestion replaces. */
  from: number
  to: number
  items: Suggestion[]
}

const SHOWN_MAX = 8
const BEGINNINGS_MAX = 3
const TIMES = ['1h', '6h', 'today', 'yesterday', '7d', '30d']

/** Return the suggestions for the token at the caret. */
export function suggestions(text: string, caret: number, known: Known): Suggestions {
  const at = pieces(text).find((piece) => piece.from < caret && caret <= piece.to)
  if (at === undefined) return { from: caret, to: caret, items: text.trim() === '' ? TOKEN_NAMES.filter((one) => one !== 'label=').map(nameOf).slice(0, SHOWN_MAX) : [] }
  const { from, to, name, value } = at
  if (name === null) {
    const written = text.slice(from, caret).toLowerCase()
    return { from, to, items: TOKEN_NAMES.filter((one) => prefixOf(one).startsWith(written)).map(nameOf) }
  }
  // In a list of values, the last one is being typed.
  const before = isList(name) ? value.slice(0, value.lastIndexOf(',') + 1) : ''
  const begun = value.slice(before.length).toLowerCase()
  const beginnings = name === 'label' ? sharedBeginnings(known.labels, begun).map(([one, hint]) => whole(name, one, hint)) : []
  const values = valuesFor(name, known)
    .filter(([one]) => one.toLowerCase().includes(begun) || (name === 'rule' && ruleName(one).includes(begun)))
    .sort(([a], [b]) => Number(b.toLowerCase().startsWith(begun)) - Number(a.toLowerCase().startsWith(begun)))
  const offered = values.flatMap(([one, hint]) => (name === 'label' ? labelForms(one, begun, known.labels) : [whole(name, before + one, hint)]))
  const items = [...beginnings, ...offered.filter(({ text: one }) => !beginnings.some((beginning) => beginning.text === one))].slice(0, SHOWN_MAX)
  return { from, to, items: items.some((item) => item.text === text.slice(from, to)) && items.length === 1 ? [] : items }
}

/** Return a label as a whole; and as a beginning, if other labels begin so or if it is written out. */
function labelForms(label: string, begun: string, labels: readonly string[]): Suggestion[] {
  const isBeginning = label.toLowerCase() === begun || labels.some((other) => other !== label && other.startsWith(label))
  return [whole('label=', label, 'this label'), ...(isBeginning ? [whole('label', label, 'and what begins so')] : [])]
}

/** Return the beginnings, up to the next mark between words, that several labels share. */
function sharedBeginnings(labels: readonly string[], begun: string): [value: string, hint: string][] {
  const numbers = new Map<string, number>()
  for (const label of labels) {
    if (!label.toLowerCase().startsWith(begun)) continue
    const end = /[-_.:/#]+(?=[^-_.:/#])/.exec(label.slice(begun.length))
    if (end === null) continue
    const beginning = label.slice(0, begun.length + end.index + end[0].length)
    numbers.set(beginning, (numbers.get(beginning) ?? 0) + 1)
  }
  return [...numbers]
    .filter(([, number]) => number > 1)
    .sort(([, one], [, other]) => other - one)
    .slice(0, BEGINNINGS_MAX)
    .map(([beginning, number]) => [beginning, `${count(number)} labels begin so`])
}

function nameOf(name: TokenName): Suggestion {
  return { text: prefixOf(name), hint: TOKENS[name].hint, isWhole: false }
}

function whole(name: TokenName, value: string, hint: string): Suggestion {
  return { text: prefixOf(name) + quotedValue(value), hint, isWhole: true }
}

function valuesFor(name: TokenName, known: Known): [value: string, hint: string][] {
  const counted = (numbers: Record<string, number>): [string, string][] => Object.entries(numbers).map(([one, runs]) => [one, count(runs)])
  const plain = (values: readonly string[]): [string, string][] => values.map((one) => [one, ''])
  switch (name) {
    case 'status': return STATES.map((state) => [state, count(known.statuses[state] ?? 0)])
    case 'agent': return counted(known.agents)
    case 'rule': return [
      ...counted(known.rules).map(([rule, runs]): [string, string] => [rule, `${ruleName(rule)} · ${runs}`]),
      ...RULES.filter((rule) => !(rule in known.rules)).map((rule): [string, string] => [rule, ruleName(rule)]),
    ]
    case 'label':
    case 'label=': return plain(known.labels)
    case 'tree':
    case 'requester': return plain(known.requesters)
    case 'cause': return plain(known.causes)
    default: return plain(TIMES)
  }
}
