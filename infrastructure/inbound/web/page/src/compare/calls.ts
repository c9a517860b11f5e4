// The tool calls of two runs, and the first one in which they differ.

import type { TranscriptEntryView } from '../api/shapes'

export interface ToolCall {
  sequence: number
  name: string
  input: unknown
  output: unknown
}

export interface ComparedCalls {
  /** The number of calls at the beginning that are the same on both sides. */
  same: number
  /** What differs in the call after them: the call itself, or only its output; null if nothing does. */
  differs: 'call' | 'output' | null
  /** Calls from there on, in pairs. */
  pairs: { left: ToolCall | null; right: ToolCall | null }[]
}

export function callsOf(entries: Pick<TranscriptEntryView, 'sequence' | 'kind' | 'body'>[]): ToolCall[] {
  return entries.filter((entry) => entry.kind === 'tool').map(({ sequence, body }) => ({
    sequence, name: typeof body['name'] === 'string' ? body['name'] : '', input: body['input'], output: body['output'],
  }))
}

/** Compare two lists of calls up to the first difference; give at most `most` pairs from there on. */
export function comparedCalls(left: ToolCall[], right: ToolCall[], most: number): ComparedCalls {
  const length = Math.max(left.length, right.length)
  let same = 0
  while (same < length && differenceOf(left[same], right[same]) === null) same += 1
  const pairs = Array.from({ length: Math.min(most, length - same) }, (_, index) => ({
    left: left[same + index] ?? null, right: right[same + index] ?? null,
  }))
  return { same, differs: same === length ? null : differenceOf(left[same], right[same]), pairs }
}

function differenceOf(left: ToolCall | undefined, right: ToolCall | undefined): ComparedCalls['differs'] {
  if (left === undefined || right === undefined || left.name !== right.name || !isSame(left.input, right.input)) return 'call'
  return isSame(left.output, right.output) ? null : 'output'
}

const isSame = (left: unknown, right: unknown): boolean => JSON.stringify(left ?? null) === JSON.stringify(right ?? null)
