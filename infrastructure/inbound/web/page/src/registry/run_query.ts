// The filter of the list of runs in its three forms: text of the search field, filters of the address,
// and parameters of the request.

import type { Parameters } from '../api/shapes'
import { instantBefore, readMoment, type MomentContext } from '../moment/moment_text'
import { RULES } from '../parts/names'
import { STATES } from '../parts/states'

export type Asked = Parameters['listRuns']
export type Filters = [string, string][]

/** A token of the search field, with its names in the address and in the command. */
interface TokenForm {
  /** Name of the filter in the address and in the API. */
  filter: string
  option: string
  /** What is written before a value, if it is not the name and a colon. */
  prefix?: string
  isRepeatable?: boolean
  /** True if commas separate values. Labels have commas of their own. */
  isList?: boolean
  isMoment?: boolean
  hint: string
}

export const TOKENS = {
  label: { filter: 'labelPrefix', option: '--label-prefix', isRepeatable: true, hint: 'beginning of the label' },
  'label=': { filter: 'label', option: '--label', prefix: 'label:=', isRepeatable: true, hint: 'the whole label' },
  agent: { filter: 'agentId', option: '--agent', isRepeatable: true, isList: true, hint: 'agent that runs' },
  status: { filter: 'status', option: '--status', isRepeatable: true, isList: true, hint: 'running, failed, …' },
  rule: { filter: 'rule', option: '--rule', hint: 'rule that refused it' },
  tree: { filter: 'tree', option: '--tree', hint: 'root session, such as main' },
  requester: { filter: 'requester', option: '--requester', hint: 'session that requested it' },
  cause: { filter: 'cause', option: '--cause', hint: 'last line of the error' },
  since: { filter: 'since', option: '--since', isMoment: true, hint: 'created from: 1h, today, 18:00' },
  until: { filter: 'until', option: '--until', isMoment: true, hint: 'created before' },
  'ended-since': { filter: 'endedSince', option: '--ended-since', isMoment: true, hint: 'ended from' },
  'ended-until': { filter: 'endedUntil', option: '--ended-until', isMoment: true, hint: 'ended until' },
} satisfies Record<string, TokenForm>

export type TokenName = keyof typeof TOKENS
export const TOKEN_NAMES = Object.keys(TOKENS) as TokenName[]
const form = (name: TokenName): TokenForm => TOKENS[name]

/** Return what is written before a value of a token: `status:`. */
export const prefixOf = (name: TokenName): string => form(name).prefix ?? `${name}:`

/** Return true if commas separate the values of a token. */
export const isList = (name: TokenName): boolean => form(name).isList === true

/** Return true if the values of a token are times. */
export const isMoment = (name: TokenName): boolean => form(name).isMoment === true

/** Values of each token, and the words. A single-valued token has one value. */
export interface RunQuery {
  values: Partial<Record<TokenName, string[]>>
  words: string
}

export const EVERYTHING: RunQuery = { values: {}, words: '' }
/** All filters that this view writes. */
export const FILTER_NAMES = [...TOKEN_NAMES.map((name) => TOKENS[name].filter), 'q']
const VALUE_CHARS_MAX = 500

export function isEmpty(query: RunQuery): boolean {
  return query.words === '' && TOKEN_NAMES.every((name) => valuesOf(query, name).length === 0)
}

export function valuesOf(query: RunQuery, name: TokenName): string[] {
  return query.values[name] ?? []
}

/** Return the query with other values of a token. */
export function withValues(query: RunQuery, name: TokenName, values: string[]): RunQuery {
  const { [name]: _, ...others } = query.values
  return { ...query, values: values.length === 0 ? others : { ...others, [name]: values } }
}

/** Return the query with a value of a token toggled. */
export function toggled(query: RunQuery, name: TokenName, value: string): RunQuery {
  const values = valuesOf(query, name)
  if (values.includes(value)) return withValues(query, name, values.filter((one) => one !== value))
  return withValues(query, name, form(name).isRepeatable ? [...values, value] : [value])
}

export interface Piece {
  /** Offsets of begin and end in the text. */
  from: number
  to: number
  /** The name before the colon; null for a word. */
  name: TokenName | null
  value: string
}

/** Split a text into tokens and words. A quote at the beginning of a value or a word reaches to the next
 * one; a backslash before a quote or a backslash is left out. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = []
  const pattern = /\S/g
  for (let start = pattern.exec(text); start !== null; start = pattern.exec(text)) {
    const from = start.index
    const named = /^([a-z-]+):/i.exec(text.slice(from, from + 20))
    const begun = named ? TOKEN_NAMES.find((name) => name === named[1]!.toLowerCase()) : undefined
    const known = begun === 'label' && text[from + named![0].length] === '=' ? 'label=' : begun
    const begin = known === undefined ? from : from + prefixOf(known).length
    const { value, to } = readValue(text, begin)
    found.push({ from, to, name: known ?? null, value })
    pattern.lastIndex = to
  }
  return found
}

function readValue(text: string, begin: number): { value: string; to: number } {
  if (text[begin] !== '"') {
    const value = /^\S*/.exec(text.slice(begin))![0]
    return { value, to: begin + value.length }
  }
  let value = ''
  for (let at = begin + 1; at < text.length; at += 1) {
    if (text[at] === '"') return { value, to: at + 1 }
    if (text[at] === '\\' && (text[at + 1] === '"' || text[at + 1] === '\\')) at += 1
    value += text[at]
  }
  return { value, to: text.length }
}

/** Parse the text of the search field. Unknown names are words; a token without a value is ignored. */
export function parseQuery(text: string): { query: RunQuery; problems: string[] } {
  const values: RunQuery['values'] = {}
  const problems: string[] = []
  const words: string[] = []
  for (const { name, value } of pieces(text)) {
    if (name === null) words.push(...value.split(/\s+/).filter(Boolean))
    else {
      const { isRepeatable } = form(name)
      const given = (isList(name) ? value.split(',') : [value]).map((one) => one.trim().slice(0, VALUE_CHARS_MAX)).filter(Boolean)
      for (const one of given) {
        const before = values[name] ?? []
        if (before.includes(one)) continue
        if (before.length > 0 && !isRepeatable) problems.push(onlyOnce(name))
        values[name] = isRepeatable ? [...before, one] : [one]
      }
    }
  }
  return { query: { values, words: words.join(' ') }, problems }
}

const onlyOnce = (name: TokenName): string => `Use ${prefixOf(name)} only once. The last one is used.`

/** Return a query as text; `parseQuery` is the inverse. */
export function printQuery(query: RunQuery): string {
  const tokens = TOKEN_NAMES.flatMap((name) => valuesOf(query, name).map((value) => `${prefixOf(name)}${quotedValue(value, isList(name))}`))
  const words = query.words.split(/\s+/).filter(Boolean).map(quotedWord)
  return [...tokens, ...words].join(' ')
}

const inQuotes = (text: string): string => `"${text.replace(/["\\]/g, (mark) => `\\${mark}`)}"`

/** Return a value as it is written in the field, in quotes if it needs them. */
export function quotedValue(value: string, isInList = false): string {
  return /^["=]|\s/.test(value) || value === '' || (isInList && value.includes(',')) ? inQuotes(value) : value
}

function quotedWord(word: string): string {
  const [piece, ...others] = pieces(word)
  return others.length === 0 && piece?.name === null && piece.value === word ? word : inQuotes(word)
}

/** Parse a query from the filters of the address, which is untrusted. */
export function queryOfFilters(filters: Filters): RunQuery {
  const values: RunQuery['values'] = {}
  for (const name of TOKEN_NAMES) {
    const { filter, isRepeatable } = form(name)
    const given = givenIn(filters, filter)
    if (given.length > 0) values[name] = isRepeatable ? given : given.slice(-1)
  }
  return { values, words: givenIn(filters, 'q').join(' ').split(/\s+/).filter(Boolean).join(' ') }
}

/** Say which filters of the address are left out, because they may be given only once. */
export function repeatedFilters(filters: Filters): string[] {
  return TOKEN_NAMES.filter((name) => !form(name).isRepeatable && givenIn(filters, form(name).filter).length > 1).map(onlyOnce)
}

function givenIn(filters: Filters, filter: string): string[] {
  return [...new Set(filters.filter(([name]) => name === filter).map(([, value]) => value.trim()).filter(Boolean))]
}

/** Write a query as filters of the address. */
export function filtersOfQuery(query: RunQuery): Filters {
  const tokens = TOKEN_NAMES.flatMap((name) => valuesOf(query, name).map((value): [string, string] => [TOKENS[name].filter, value]))
  return query.words === '' ? tokens : [...tokens, ['q', query.words]]
}

export interface Question {
  parameters: Asked
  /** Options of `spawnlog run list` for the same query. */
  options: string[]
  /** Reason why parts of the query are ignored. */
  problems: string[]
}

const WORDS_MAX = 8
const WORDS_CHARS_MAX = 200
/** A word that looks like a token, and is no address or time. */
const NAMED_WORD = /^[a-z][a-z-]+:(?=[^\s/])/

/**
 * Return the parameters of the request. Values that the server would refuse are ignored, with a problem. A
 * time ago counts back from the shown moment.
 */
export function questionOf(query: RunQuery, context: MomentContext, isLive = true): Question {
  const parameters: Record<string, unknown> = {}
  const options: string[] = []
  const problems: string[] = []
  for (const name of TOKEN_NAMES) {
    const { filter, option, isRepeatable, isMoment } = form(name)
    const values = valuesOf(query, name).flatMap((value) => {
      const problem = problemOf(name, value)
      if (problem !== null) problems.push(problem)
      if (problem !== null || !isMoment) return problem === null ? [value] : []
      const read = readMoment(value, context)
      if (read.problem !== null) problems.push(read.problem)
      // Every run was created before now, so now is no bound.
      return read.at === null ? [] : [isLive ? read.at : (instantBefore(read.at, context.now) ?? read.at)]
    })
    if (values.length === 0) continue
    parameters[filter] = isRepeatable ? values : values[0]
    options.push(...values.flatMap((value) => [option, value]))
  }
  const words = query.words.split(/\s+/).filter(Boolean)
  const searched = words.slice(0, WORDS_MAX).join(' ').slice(0, WORDS_CHARS_MAX)
  if (searched !== query.words) problems.push(`Only the first ${WORDS_MAX} words and ${WORDS_CHARS_MAX} characters are searched for.`)
  for (const name of new Set(words.map((word) => NAMED_WORD.exec(word)?.[0]))) {
    if (name !== undefined) problems.push(`“${name}” is no filter, so it is looked for as a word.`)
  }
  if (searched !== '') {
    parameters['q'] = searched
    options.push('--words', searched)
  }
  return { parameters: parameters as Asked, options, problems }
}

function problemOf(name: TokenName, value: string): string | null {
  if (name === 'status' && !STATES.some((state) => state === value)) return `“${shown(value)}” is not a status. Use ${listed(STATES)}.`
  if (name === 'rule' && !RULES.some((rule) => rule === value)) {
    const near = RULES.filter((rule) => rule.includes(value) || value.includes(rule)).slice(0, 3)
    return `“${shown(value)}” is not a rule. Use ${near.length > 0 ? listed(near) : 'one that is suggested'}.`
  }
  return null
}

function shown(value: string): string {
  return value.length > 40 ? `${value.slice(0, 40)}…` : value
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}

/** Return the parameters without some tokens, to count the alternatives of these tokens. */
export function without(parameters: Asked, names: readonly TokenName[]): Asked {
  const left = { ...parameters } as Record<string, unknown>
  for (const name of names) delete left[TOKENS[name].filter]
  return left as Asked
}
