// What an event of the log says, in words: its type, and the facts that tell it from others of its type.

import type { EventView, Parameters } from '../api/shapes'
import { nameOfSession, ruleName } from '../parts/names'
import { count, counted, duration, visible } from '../parts/text'
import { wordsOf } from '../run/sentences'

export type EventType = Exclude<Parameters['listEvents']['types'], readonly unknown[] | null | undefined>
type Payload = EventView['payload']
type Fact = string | null

const FACTS_MAX = 4
const FACT_CHARS_MAX = 200

const isScalar = (value: unknown): value is string | number | boolean => ['string', 'number', 'boolean'].includes(typeof value)

function named(name: string, value: unknown): Fact {
  return isScalar(value) && value !== '' ? `${name} ${value}` : null
}

function plain(value: unknown): Fact {
  return isScalar(value) && value !== '' ? String(value) : null
}

function session(key: unknown): Fact {
  return typeof key === 'string' ? nameOfSession(key) : null
}

function member(payload: Payload, name: string): Payload {
  const value = payload[name]
  return typeof value === 'object' && value !== null ? (value as Payload) : {}
}

/** What is known of an event beside it. A list of events holds no texts. */
export interface Known {
  texts?: Partial<Record<'error' | 'reason', string | null>> | undefined
  /** Why the attempt before a parked effect failed. */
  cause?: string | undefined
}

/** Return who asked, and the reason, or that one was recorded. */
function askedBy({ by, reason }: Payload, { texts }: Known): Fact[] {
  const text = plain(texts?.reason)
  return text !== null ? [`${named('by', by) ?? ''}: ${text}`] : [named('by', by), typeof reason === 'object' && reason !== null ? 'with a reason' : null]
}

const isFailed = ({ error, retryAfterSeconds }: Payload): boolean => (error ?? null) !== null || (retryAfterSeconds ?? null) !== null

function attempted(payload: Payload, { texts }: Known): Fact[] {
  const { attempt, statusCode, outcome, retryAfterSeconds: pause } = payload
  const cause = named('HTTP', statusCode) ?? plain(texts?.error) ?? plain(outcome)?.replaceAll('_', ' ') ?? null
  return [`at attempt ${String(attempt)}${cause === null ? '' : `: ${cause}`}`, typeof pause === 'number' ? `again in ${duration(1_000 * pause)}` : null]
}

function parked({ attempts, reason }: Payload, { cause }: Known): Fact[] {
  const after = `after ${counted(Number(attempts), 'attempt')}`
  return cause !== undefined ? [`${after}: ${cause}`] : [after, reason === 'attempts' ? null : (plain(reason)?.replaceAll('_', ' ') ?? null)]
}

const FACTS: Partial<Record<EventType, (payload: Payload, known: Known) => Fact[]>> = {
  AgentOverridden: (of) => [`${String(of['fromAgentId'])} → ${String(of['toAgentId'])}`],
  ChildAdmitted: (of) => [typeof of['activeChildren'] === 'number' ? `child ${of['activeChildren'] + 1} of at most ${String(of['maxChildren'])}` : null],
  ConfigurationActivated: (of) => [named('revision', of['revision']), named('by', of['activatedBy']), named('from', of['source'])],
  EffectAttempted: attempted,
  EffectParked: parked,
  EffectRedriven: askedBy,
  PreparationStarted: (of) => [named('agent', of['agentId'])],
  RunAnnounced: (of) => [plain(of['status']), of['disposition'] === 'inbox' ? 'to the inbox' : plain(of['disposition']), plain(of['reason'])],
  RunClaimed: (of) => [typeof of['laneRunning'] === 'number' && of['laneWidth'] ? `slot ${of['laneRunning'] + 1} of ${String(of['laneWidth'])}` : 'taken over'],
  RunEnded: (of) => [
    plain(of['outcome']), of['reason'] === of['outcome'] || of['reason'] === 'exit' ? null : plain(of['reason']), of['exitCode'] === 0 ? null : named('exit code', of['exitCode']),
    typeof of['runtimeMs'] === 'number' ? duration(of['runtimeMs']) : null, named('stopped by', of['stoppedBy']),
  ],
  RunQueued: (of) => [named('lane', of['lane']), named('depth', of['laneDepth'])],
  RunStarted: (of) => [named('runtime', of['runtime'])],
  ScriptsResolved: (of) => [Array.isArray(of['receipts']) && of['receipts'].length > 0 ? counted(of['receipts'].length, 'context script') : null],
  SessionCreated: (of) => [named('agent', of['agentId']), named('depth', of['depth']), named('model', member(of, 'plan')['model'])],
  SessionObserved: (of) => [session(of['sessionKey'])],
  SpawnRefused: (of) => [typeof of['rule'] === 'string' ? ruleName(of['rule']) : null, named('at', of['step'])],
  SpawnRequested: (of) => [named('agent', of['requestedAgentId']), named('label', of['label']), named('for', session(member(of, 'requester')['sessionKey']))],
  StepBegun: (of) => [plain(of['step']), plain(of['relative'])],
  StepTaken: (of) => [`${String(of['step'])} ${String(of['outcome'])}`, typeof of['fileCount'] === 'number' ? counted(of['fileCount'], 'file') : null],
  StopRequested: askedBy,
  TranscriptProvided: (of) => [typeof of['entries'] === 'number' ? `${count(of['entries'])} entries` : null],
}

/** Return the facts of an event of any type: its short values, without ids and keys. */
function others(payload: Payload): Fact[] {
  return Object.entries(payload)
    .filter(([name, value]) => isScalar(value) && value !== '' && value !== false && !/(Id|Ids|Key|hmac)$/.test(name))
    .map(([name, value]) => `${wordsOf(name).toLowerCase()} ${String(value)}`)
    .slice(0, FACTS_MAX)
}

const EFFECTS: Record<string, string> = { EffectAttempted: 'attempted', EffectParked: 'parked', EffectRedriven: 'asked again' }
const SUBJECTS: Record<string, string> = { webhook: 'Delivery to', hook: 'Hook', undo: 'Undo of' }

/** Return the words of a type of event: `Run queued`. */
export function typeWords(type: string): string {
  return EFFECTS[type] === undefined ? wordsOf(type) : `Delivery, hook or undo ${EFFECTS[type]}`
}

/** Return the words of an event: `Run queued`; of an effect with its name, as in `Delivery to crm failed`. */
function what({ type, payload }: Pick<EventView, 'type' | 'payload'>): string {
  const { kind, name } = payload
  const subject = typeof kind === 'string' && typeof name === 'string' ? SUBJECTS[kind] : undefined
  if (EFFECTS[type] === undefined || subject === undefined) return typeWords(type)
  return visible(`${subject} ${String(name)} ${type !== 'EffectAttempted' ? EFFECTS[type] : isFailed(payload) ? 'failed' : 'done'}`)
}

/** Return why the last attempt before each parked effect failed, such as `HTTP 500`, by the position of the event. */
export function causesOf(events: readonly Pick<EventView, 'position' | 'type' | 'runId' | 'payload'>[]): Map<number, string> {
  const last = new Map<string, string>()
  const causes = new Map<number, string>()
  for (const { position, type, runId, payload } of events.filter((one) => one.type in EFFECTS).sort((one, other) => one.position - other.position)) {
    const key = JSON.stringify([runId, payload['kind'], payload['name']])
    if (type === 'EffectAttempted' && isFailed(payload)) last.set(key, named('HTTP', payload['statusCode']) ?? 'no answer')
    else if (type === 'EffectParked' && last.has(key) && ['attempts', 'refused'].includes(String(payload['reason']))) causes.set(position, last.get(key)!)
    else last.delete(key)
  }
  return causes
}

/** Return what happened: `Run queued`, and `lane subagent, depth 1`. */
export function happened(event: Pick<EventView, 'type' | 'payload'>, known: Known = {}): { what: string; facts: string } {
  const facts = (FACTS[event.type as EventType] ?? others)(event.payload, known)
  return { what: what(event), facts: visible(facts.filter((fact) => fact !== null).join(', ').slice(0, FACT_CHARS_MAX)) }
}

/** Return true if the facts go on with the words of the event: `Delivery to crm parked`, `after 1 attempt`. */
export function goesOn(facts: string): boolean {
  return /^(after|at|by) /.test(facts)
}

/** Return the types in a text such as `spawn refused, Run ended` or `SpawnRefused RunEnded`. */
export function typesOf(text: string): string[] {
  const named = Object.keys(EFFECTS).reduce((all, type) => all.replace(new RegExp(typeWords(type), 'gi'), type), text)
  return named.split(',').flatMap((part) => {
    const words = part.split(' ').filter(Boolean)
    const isKey = (word: string): boolean => /^[A-Z][a-z]+[A-Z]/.test(word)
    const spelled = words.filter((word) => !isKey(word)).map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase()).join('')
    return [...words.filter(isKey), ...(spelled === '' ? [] : [spelled])]
  })
}

/** Return the types of events, the most frequent ones first. */
export function frequentTypes(events: readonly Pick<EventView, 'type'>[], most: number): string[] {
  const counts = new Map<string, number>()
  for (const { type } of events) counts.set(type, (counts.get(type) ?? 0) + 1)
  return [...counts].sort(([, one], [, other]) => other - one).slice(0, most).map(([type]) => type)
}
