// Differences of two configurations as people say them: which agent lost or gained what, and which
// setting went from what to what.

import { isLongNumber } from '../api/json'
import { differences } from './difference'

export interface ConfigChange {
  /** What it is about: an agent, the defaults of all agents, or a section of the configuration. */
  subject: string
  /** The setting, by its path below the subject; empty for the subject as a whole. */
  setting: string
  pointer: string
  kind: 'added' | 'removed' | 'changed' | 'moved'
  before?: unknown
  after?: unknown
  /** Items of a list that are gone or new, as they read; both empty for anything but a list of values. */
  lost: string[]
  gained: string[]
}

/** The parts of a pointer that say nothing to a reader. */
const CONTAINERS = new Set(['subagents'])

/** The changes, grouped by subject in the order of the configuration, and whether there are more. */
export function changesBetween(left: unknown, right: unknown): { groups: { subject: string; changes: ConfigChange[] }[]; isCut: boolean } {
  const { items, isCut } = differences(left, right, { areListsWhole: true })
  const groups = new Map<string, ConfigChange[]>()
  for (const item of items) {
    const { subject, setting } = nameOf(item.pointer, item.kind === 'removed' ? left : right)
    const areLists = item.kind === 'changed' && Array.isArray(item.before) && Array.isArray(item.after)
    const [before, after] = areLists ? [readsOf(item.before), readsOf(item.after)] : [[], []]
    const change = { ...item, subject, setting, lost: without(before, after), gained: without(after, before) }
    groups.set(subject, [...(groups.get(subject) ?? []), change])
  }
  return { groups: [...groups].map(([subject, changes]) => ({ subject, changes })), isCut }
}

/** A value of the configuration as it reads: a text without quotes, anything else as JSON. */
export function reads(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const readsOf = (value: unknown): string[] => (value as unknown[]).map(reads)

/** What is in a list more often than in the other one. */
function without(list: string[], other: string[]): string[] {
  const left = [...other]
  return list.filter((item) => {
    const place = left.indexOf(item)
    if (place < 0) return true
    left.splice(place, 1)
    return false
  })
}

function nameOf(pointer: string, content: unknown): { subject: string; setting: string } {
  const parts = pointer.split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const names = named(parts, content)
  const [section = '', kind = ''] = parts
  if (section === 'agents' && (kind === 'list' || kind === 'entries') && names.length > 2) return { subject: `Agent ${names[2]}`, setting: joined(names.slice(3)) }
  if (section === 'agents' && kind === 'defaults' && names.length > 2) return { subject: 'All agents (defaults)', setting: joined(names.slice(2)) }
  return names.length < 2 ? { subject: section === '' ? 'The configuration' : section, setting: '' } : { subject: section, setting: joined(names.slice(1)) }
}

/** The parts, with the name of an item in place of its number in a list. */
function named(parts: string[], content: unknown): string[] {
  let value = content
  return parts.map((part) => {
    const isList = Array.isArray(value)
    value = value !== null && typeof value === 'object' && !isLongNumber(value) && Object.hasOwn(value, part) ? (value as Record<string, unknown>)[part] : undefined
    if (!isList || value === null || typeof value !== 'object') return part
    const item = value as Record<string, unknown>
    const name = item['id'] ?? item['key'] ?? item['name']
    return typeof name === 'string' ? name : part
  })
}

const joined = (names: string[]): string => names.filter((name, place) => place === names.length - 1 || !CONTAINERS.has(name)).join('.')
