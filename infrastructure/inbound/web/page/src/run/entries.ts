// How the entries of a transcript read.

import type { TranscriptEntryView } from '../api/shapes'
import { count } from '../parts/text'

type Body = TranscriptEntryView['body']

const text = (body: Body, name: string): string | null => (typeof body[name] === 'string' ? body[name] : null)
const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/** The role of a message, the name of a tool, or the kind of any other entry. */
export function titleOf(entry: Pick<TranscriptEntryView, 'kind' | 'body'>): string {
  if (entry.kind === 'tool') return `Tool: ${text(entry.body, 'name') ?? ''}`
  return capital((entry.kind === 'message' ? text(entry.body, 'role') : null) ?? entry.kind)
}

/** What an entry says, in words where it has some. */
export function textOf({ kind, body }: Pick<TranscriptEntryView, 'kind' | 'body'>): string {
  const { inputTokens, outputTokens } = body
  if (kind === 'usage' && typeof inputTokens === 'number' && typeof outputTokens === 'number') {
    return [`${count(inputTokens)} tokens in, ${count(outputTokens)} out`, text(body, 'model')].filter(Boolean).join(', ')
  }
  return text(body, 'text') ?? JSON.stringify(body, null, 2)
}

/** The input or output of a tool: the members of a JSON object on lines of their own, its texts without quotes. */
export function toolText(value: unknown): string {
  if (typeof value !== 'string') return value === null || value === undefined ? '' : JSON.stringify(value, null, 2)
  try {
    const parsed: unknown = JSON.parse(value)
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) {
      return Object.entries(parsed).map(([name, member]) => `${name}: ${typeof member === 'string' ? member : JSON.stringify(member)}`).join('\n')
    }
  } catch {
    // Not JSON: a text as it is.
  }
  return value
}
