// A prompt cut into its parts. Offsets are of UTF-8 bytes, and JavaScript counts in UTF-16.

import type { Answers, PromptPartView } from '../api/shapes'
import type { View } from '../moment/address'

export interface PromptPart extends PromptPartView {
  text: string
}

/** Return the parts of one of the two texts in order, each with its own text. */
export function cutIntoParts(text: string, of: PromptPartView['of'], parts: PromptPartView[]): PromptPart[] {
  const bytes = new TextEncoder().encode(text)
  const decoder = new TextDecoder()
  return parts
    .filter((part) => part.of === of)
    .sort((one, other) => one.start - other.start)
    .map((part) => ({ ...part, text: decoder.decode(bytes.subarray(part.start, part.end)) }))
}

export interface Origin {
  name: string
  view: View
  id: string | null
  filters: [string, string][]
}

/** Return where a part of a run's prompt came from; null for a separator. */
export function originOf(source: string, run: Pick<Answers['getRun'], 'runId' | 'requesterSessionKey' | 'configRevision'>): Origin | null {
  const kind = source.split(':', 1)[0]!
  const ofRun = (name: string, part: string): Origin => ({ name, view: 'run', id: run.runId, filters: [['part', part]] })
  switch (kind) {
    case 'separator': return null
    case 'task': case 'message': return { name: 'the spawn request', view: 'log', id: null, filters: [['runId', run.runId]] }
    case 'script': case 'attachments': return ofRun('the history', 'history')
    case 'sharedContext': return ofRun('the shared context', 'shared')
    case 'preamble': case 'fork': return { name: 'the requester', view: 'tree', id: run.requesterSessionKey, filters: [] }
    default: return { name: `revision ${run.configRevision}`, view: 'configuration', id: null, filters: [['revision', String(run.configRevision)]] }
  }
}
