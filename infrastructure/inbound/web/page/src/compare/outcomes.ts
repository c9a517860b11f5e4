// What came of two runs, row by row, as a user reads it.

import { plainText } from '../parts/markdown'
import { ruleName } from '../parts/names'
import { count, dollars, duration } from '../parts/text'
import { errorOf } from '../run/errors'

type Side = Record<string, unknown>

export interface OutcomeRow {
  name: string
  left: string
  right: string
  isSame: boolean
  /** A text of several lines. */
  isBlock: boolean
}

interface Kind {
  name: string
  /** The member that an erasure names. */
  member: string
  reads: (side: Side) => string
  isBlock?: boolean
}

const KINDS: Kind[] = [
  { name: 'Outcome', member: 'status', reads: outcomeOf },
  { name: 'Error', member: 'error', reads: ({ error }) => (typeof error === 'string' ? errorOf(error).headline : '') },
  { name: 'Result', member: 'resultText', reads: ({ resultText }) => (typeof resultText === 'string' ? beginning(resultText) : ''), isBlock: true },
  { name: 'Elapsed', member: 'runtimeMs', reads: ({ runtimeMs }) => (typeof runtimeMs === 'number' ? duration(runtimeMs) : '') },
  { name: 'Tokens', member: 'usage', reads: ({ usage }) => tokensOf(usage) },
  { name: 'Cost', member: 'estimatedCostUsd', reads: ({ estimatedCostUsd }) => (typeof estimatedCostUsd === 'number' ? dollars(estimatedCostUsd) : '') },
  { name: 'Models', member: 'models', reads: ({ usage }) => modelsOf(usage), isBlock: true },
]
const ERASED = '(erased: it may have differed)'

/** The rows in which at least one side has something. `erased` are members whose texts are gone. */
export function outcomeRows(left: Side, right: Side, erased: string[] = []): OutcomeRow[] {
  return KINDS.map(({ name, member, reads, isBlock = false }) => {
    const sides = [left, right].map((side) => reads(side) || (erased.includes(member) ? ERASED : '')) as [string, string]
    return { name, left: sides[0], right: sides[1], isSame: sides[0] === sides[1] && !erased.includes(member) && (name !== 'Result' || left[member] === right[member]), isBlock }
  }).filter((row) => row.left !== '' || row.right !== '')
}

const LINES_MAX = 8
const CHARS_MAX = 600

/** The first lines of a text, without Markdown: all of it is in the view of the run. */
function beginning(text: string): string {
  const read = plainText(text)
  const begun = read.slice(0, CHARS_MAX).split('\n').slice(0, LINES_MAX).join('\n')
  return begun === read ? read : `${begun.trimEnd()} …`
}

function outcomeOf({ status, rule, reason }: Side): string {
  const why = typeof rule === 'string' ? `: ${ruleName(rule)}` : typeof reason === 'string' ? ` (${reason})` : ''
  return typeof status === 'string' ? `${status}${why}` : ''
}

function tokensOf(usage: unknown): string {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = Object(usage) as Side
  const parts = ([[inputTokens, 'in'], [outputTokens, 'out'], [cacheReadTokens, 'read from cache'], [cacheWriteTokens, 'written to cache']] as const)
    .flatMap(([of, what], index) => (typeof of === 'number' && (of > 0 || index < 2) ? [`${count(of)} ${what}`] : []))
  return parts.join(', ')
}

function modelsOf(usage: unknown): string {
  const { models } = Object(usage) as Side
  if (!Array.isArray(models)) return ''
  return models.map((one: unknown) => {
    const { model, costUsd } = Object(one) as Side
    return [typeof model === 'string' ? model : 'model not named', tokensOf(one), typeof costUsd === 'number' ? dollars(costUsd) : 'no price'].filter(Boolean).join(', ')
  }).join('\n')
}
