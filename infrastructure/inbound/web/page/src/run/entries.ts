// A transcript as a conversation: messages by role, tool calls, output and notes.

import type { TranscriptEntryView } from '../api/shapes'
import { count } from '../parts/text'

type Entry = Pick<TranscriptEntryView, 'sequence' | 'recordedAt' | 'kind' | 'body'>

export type Turn = { sequence: number; at: string } & (
  | { kind: 'message'; role: string; text: string }
  | { kind: 'tool'; name: string; input: unknown; output: unknown; durationMs: number | null }
  /** Lines of a child that are in no known form. */
  | { kind: 'output'; text: string }
  | { kind: 'note'; name: string; text: string }
)

const text = (body: Entry['body'], name: string): string | null => (typeof body[name] === 'string' ? body[name] : null)
const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/** Return the turns of a conversation. Lines of output that follow each other are one turn, and a result
 * that repeats the message before it is left out. */
export function conversationOf(entries: Entry[]): Turn[] {
  const turns: Turn[] = []
  let lastSaid: string | null = null
  for (const entry of entries) {
    const turn = turnOf(entry)
    const last = turns.at(-1)
    if (turn.kind === 'output' && last?.kind === 'output') last.text += `\n${turn.text}`
    else if (turn.kind !== 'message' || turn.role !== 'Result' || turn.text !== lastSaid) turns.push(turn)
    if (turn.kind === 'message') lastSaid = turn.text
  }
  return turns
}

function turnOf({ sequence, recordedAt: at, kind, body }: Entry): Turn {
  const said = text(body, 'text')
  if (kind === 'tool') {
    const { input, output, durationMs } = body
    return { sequence, at, kind: 'tool', name: text(body, 'name') ?? '', input, output, durationMs: typeof durationMs === 'number' ? durationMs : null }
  }
  if (kind === 'message' && said !== null) return { sequence, at, kind: 'message', role: capital(text(body, 'role') ?? kind), text: said }
  if (kind === 'result' && said !== null) return { sequence, at, kind: 'message', role: 'Result', text: said }
  if (kind === 'text' && said !== null) return { sequence, at, kind: 'output', text: said }
  return { sequence, at, kind: 'note', name: capital(kind), text: kind === 'usage' ? usageOf(body) : (said ?? JSON.stringify(body, null, 2)) }
}

function usageOf(body: Entry['body']): string {
  const { inputTokens, outputTokens } = body
  if (typeof inputTokens !== 'number' || typeof outputTokens !== 'number') return JSON.stringify(body, null, 2)
  return [`${count(inputTokens)} tokens in, ${count(outputTokens)} out`, text(body, 'model')].filter(Boolean).join(', ')
}

const DEPTH_MAX = 8

/** Return the input or output of a tool for reading: JSON as lines of names and values, texts without quotes
 * and with their line breaks. */
export function toolText(value: unknown): string {
  const parsed = parsedOf(value)
  if (parsed === null || parsed === undefined) return ''
  return typeof parsed === 'string' ? parsed : linesOf(parsed, 0).join('\n')
}

/** Return the same on one line: the first text, then the other members by name. */
export function toolLine(value: unknown, charsMax: number): string {
  const parsed = parsedOf(value)
  const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
  const text = isObject
    ? Object.entries(parsed).map(([name, member], index) => {
        const shown = typeof member === 'string' ? member : JSON.stringify(member)
        return index === 0 && typeof member === 'string' ? shown : `${name}: ${shown}`
      }).join(' · ')
    : toolText(value)
  return text.slice(0, 4 * charsMax).replace(/\s+/g, ' ').trim().slice(0, charsMax)
}

/** Values other than texts are recorded as JSON in a text. */
function parsedOf(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

function linesOf(value: unknown, depth: number): string[] {
  if (typeof value === 'string') return value.split('\n')
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0 || depth >= DEPTH_MAX) return [JSON.stringify(value)]
  const isList = Array.isArray(value)
  return Object.entries(value).flatMap(([name, member]) => {
    const lines = linesOf(member, depth + 1)
    const head = isList ? '-' : `${name}:`
    const isShort = lines.length === 1 && (typeof member !== 'object' || member === null || Object.keys(member).length === 0)
    return isShort ? [`${head} ${lines[0]}`] : isList ? [`- ${lines[0]}`, ...indented(lines.slice(1))] : [head, ...indented(lines)]
  })
}

const indented = (lines: string[]): string[] => lines.map((line) => `  ${line}`)
