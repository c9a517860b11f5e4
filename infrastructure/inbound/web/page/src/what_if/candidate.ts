// The configuration that is tried: single values that are set, or the whole text; and what is
// wrong in it, by line.

import { isLongNumber, readJson } from '../api/json'
import type { RuleView } from '../api/shapes'
import { visible } from '../parts/text'

export interface Setting {
  pointer: string
  value: unknown
}

const CHOICES_MAX = 100
const OFFERED_MAX = 300
const SUBAGENTS = '/agents/defaults/subagents'
export const EXAMPLE = `${SUBAGENTS}/maxChildrenPerAgent`
/** Settings of sub-agents by name, with their meaning. */
const MEANINGS: Record<string, string> = {
  allowAgents: 'agents that may be spawned', requireAgentId: 'a spawn must name its agent', maxConcurrent: 'runs that execute at the same time',
  maxSpawnDepth: 'maximum depth of sub-agents', maxChildrenPerAgent: 'maximum active children of one session', archiveAfterMinutes: 'minutes until a run is archived',
  model: 'model of children', thinking: 'thinking level of children', runTimeoutSeconds: 'time limit of a run', contextPreambleMaxChars: 'maximum length of a preamble',
}

export interface PlacedProblem {
  /** In the text; null for what is said of no line. */
  line: number | null
  said: string
}

/** What is wrong with a value that is to be set; null when nothing is. */
export function settingProblem(pointer: string, text: string): string | null {
  if (!pointer.startsWith('/')) return `No setting has “${visible(pointer)}” in its name. A path such as ${EXAMPLE} names any setting.`
  if (/~(?![01])/.test(pointer)) return 'In a path write ~0 for ~, and ~1 for / within a name.'
  try {
    JSON.parse(text)
  } catch {
    return 'Not valid JSON. Put text in quotes: "text"'
  }
  return null
}

/** Reads `/path/to/value=JSON` as an address and the command have it; null for what is none. */
export function readSetting(text: string): Setting | null {
  const at = text.indexOf('=')
  const [pointer, value] = [text.slice(0, at), text.slice(at + 1)]
  return at < 1 || settingProblem(pointer, value) !== null ? null : { pointer, value: readJson(value) }
}

export function writeSetting(setting: Setting): string {
  return `${setting.pointer}=${JSON.stringify(setting.value)}`
}

/** Pointers to the single values of a configuration, and to its lists. */
export function pointersOf(content: unknown, most: number, above = ''): string[] {
  if (content === null || typeof content !== 'object' || isLongNumber(content)) return [above]
  const found: string[] = Array.isArray(content) ? [above] : []
  for (const [name, value] of Object.entries(content)) {
    if (found.length >= most) break
    if (Array.isArray(content) && (value === null || typeof value !== 'object' || isLongNumber(value))) continue
    found.push(...pointersOf(value, most - found.length, `${above}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`))
  }
  return found.slice(0, most).filter(Boolean)
}

export interface OfferedSetting {
  pointer: string
  /** Empty if it is not known. */
  meaning: string
}

const lastName = (pointer: string): string => pointer.slice(pointer.lastIndexOf('/') + 1)

/** Return the settings that a configuration has, and those of sub-agents that could be added to it. */
export function offeredSettings(content: unknown): OfferedSetting[] {
  const canAdd = valueAt(content, SUBAGENTS) !== undefined
  const pointers = new Set([...pointersOf(content, OFFERED_MAX), ...(canAdd ? Object.keys(MEANINGS).map((name) => `${SUBAGENTS}/${name}`) : [])])
  return [...pointers].filter(Boolean).map((pointer) => {
    const agent = /^\/agents\/list\/\d+(?=\/)/.exec(pointer)?.[0]
    const id = agent === undefined ? undefined : valueAt(content, `${agent}/id`)
    return { pointer, meaning: [MEANINGS[lastName(pointer)], typeof id === 'string' ? `of ${id}` : undefined].filter(Boolean).join(' ') }
  })
}

/** Return the settings with this name; if there are none, those whose name contains the text; else, those
 * whose path and meaning contain each of its words. */
export function fitting(offered: readonly OfferedSetting[], text: string): string[] {
  // As decisions name settings: agents.list[0].subagents.allowAgents.
  const wanted = text.trim().toLowerCase().replace(/\[(\d+)\]/g, '/$1').replaceAll('.', '/')
  if (wanted === '') return []
  const tests: ((one: OfferedSetting) => boolean)[] = [
    ({ pointer }) => lastName(pointer).toLowerCase() === wanted,
    ({ pointer }) => lastName(pointer).toLowerCase().includes(wanted),
    ({ pointer, meaning }) => wanted.split(/\s+/).every((word) => `${pointer} ${meaning}`.toLowerCase().includes(word)),
  ]
  return tests.map((test) => offered.filter(test)).find((found) => found.length > 0)?.map((one) => one.pointer) ?? []
}

/** What stands at a pointer; undefined where nothing does. */
export function valueAt(content: unknown, pointer: string): unknown {
  let found = content
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (found === null || typeof found !== 'object' || isLongNumber(found) || !Object.hasOwn(found, name)) return undefined
    found = (found as Record<string, unknown>)[name]
  }
  return found
}

/** Return the values to offer for a setting, as JSON: both for a yes or no, and all agents and each for a list of agents. */
export function choicesOf(content: unknown, pointer: string): string[] {
  if (typeof valueAt(content, pointer) === 'boolean' || pointer.endsWith('/requireAgentId')) return ['true', 'false']
  if (!pointer.endsWith('/allowAgents')) return []
  const listed = valueAt(content, '/agents/list')
  const ids = [...Object.keys(Object(valueAt(content, '/agents/entries'))), ...(Array.isArray(listed) ? listed.map((one) => valueAt(one, '/id')) : [])]
  return [...new Set([['*'], ...ids.map((id) => [id])].map((one) => JSON.stringify(one)))].slice(0, CHOICES_MAX)
}

const SETTING_OF_RULE: Record<string, string> = {
  depth: 'maxSpawnDepth', active_children: 'maxChildrenPerAgent', require_agent_id: 'requireAgentId', allow_agents: 'allowAgents',
}

/** Where in `content`, the configuration by which a spawn was refused, the setting stands that its rule
 * compared: with the requester's agent or among the defaults. Null when the rule compares none, or it
 * stands nowhere. */
export function settingOf(refusal: Pick<RuleView, 'rule' | 'compared'>, content: unknown): string | null {
  const name = SETTING_OF_RULE[refusal.rule]
  if (name === undefined) return null
  let above = SUBAGENTS
  if (refusal.compared?.['from'] === 'agent') {
    const requester = refusal.compared['requesterAgentId']
    const entries = Object.keys(Object(valueAt(content, '/agents/entries')))
    const key = entries.find((id) => id.toLowerCase() === requester)
    const listed = valueAt(content, '/agents/list')
    const place = Array.isArray(listed) ? listed.findIndex((one) => String(valueAt(one, '/id')).toLowerCase() === requester) : -1
    above = key === undefined ? `/agents/list/${place}/subagents` : `/agents/entries/${key}/subagents`
  }
  // What a value is set in has to be there.
  return valueAt(content, above) === undefined ? null : `${above}/${name}`
}

/** What a refusal says of a text that was sent by the name `name`, by line. `errors` are what it
 * says of the request when nothing in it is about a line. */
export function placedProblems(
  detail: string,
  name: string,
  errors: { pointer?: string; detail?: string }[] = [],
): PlacedProblem[] {
  const found: PlacedProblem[] = []
  for (const line of detail.split('\n')) {
    const start = line.indexOf(`${name}:`)
    const place = start < 0 ? null : /^(\d+):(?:\d+: )?\s*/.exec(line.slice(start + name.length + 1))
    if (place) found.push({ line: Number(place[1]), said: line.slice(start + name.length + 1 + place[0].length) })
  }
  if (found.length > 0) return found
  return errors.length > 0
    ? errors.map((one) => ({ line: null, said: [one.pointer, one.detail].filter(Boolean).join(': ') }))
    : [{ line: null, said: detail }]
}
