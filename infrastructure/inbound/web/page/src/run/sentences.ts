// What an event of a run did, as a sentence.

import type { StateChangeView } from '../api/shapes'
import { ruleName } from '../parts/names'
import { counted } from '../parts/text'

const TEXT_CHARS_MAX = 120
/** Fields that say most about an event, in the order in which they are told. */
const TOLD = ['status', 'agentId', 'lane', 'model', 'error', 'rule', 'stopReason', 'taskPreview', 'label'] as const
const NAMES: Record<string, string> = { agentId: 'agent', stopReason: 'reason', taskPreview: 'task' }

/** Return the words of an event type: `RunStarted` is `Run started`. */
export function wordsOf(type: string): string {
  const words = type.replace(/(?<=[a-z0-9])(?=[A-Z])/g, ' ').toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Return the words of a field: `announcedAt` is `announced at`. */
export function fieldName(field: string): string {
  return NAMES[field] ?? wordsOf(field).toLowerCase()
}

/** Return what the event set, in words: `status running, lane main`. */
export function toldOf(changes: StateChangeView['changes']): string {
  return TOLD.flatMap((field) => {
    const change = changes.find((one) => one.path === `/${field}` && one.op !== 'remove')
    if (change === undefined || change.value === null || typeof change.value === 'object') return []
    if (field === 'rule') return [ruleName(String(change.value))]
    const text = String(change.value).trim()
    const line = text.split('\n').at(-1)!.slice(0, TEXT_CHARS_MAX)
    return line === '' ? [] : [`${fieldName(field)} ${line}`]
  }).join(', ')
}

/** Return the names of the fields that changed, each once; every event changes the version. */
export function fieldsOf(changes: StateChangeView['changes']): string[] {
  return [...new Set(changes.map((one) => one.path.split('/')[1] ?? '').filter((field) => field !== '' && field !== 'version'))]
}

/** Return what an event changed, on one line; the first one sets every field. */
export function changedText(version: number, fields: string[]): string {
  const number = counted(fields.length, 'field')
  return version === 1 ? `Created with ${number}` : `${number} changed: ${fields.map(fieldName).join(', ')}`
}
