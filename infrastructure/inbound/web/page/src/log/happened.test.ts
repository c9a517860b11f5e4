import { expect, test } from 'vitest'

import type { EventView } from '../api/shapes'
import { frequentTypes, happened, typesOf } from './happened'

const text = (type: string, payload: EventView['payload']): string => Object.values(happened({ type, payload })).join(': ')

test('each event says what happened', () => {
  expect(text('RunQueued', { lane: 'subagent', laneDepth: 1 })).toBe('Run queued: lane subagent, depth 1')
  expect(text('RunClaimed', { holder: 'vm', attempt: 1, laneWidth: 6, laneRunning: 0 })).toBe('Run claimed: slot 1 of 6')
  expect(text('RunClaimed', { holder: 'vm', attempt: 2, laneWidth: null, laneRunning: null })).toBe('Run claimed: taken over')
  expect(text('RunEnded', { outcome: 'error', reason: 'exit', exitCode: 1, runtimeMs: 4_100 })).toBe('Run ended: error, exit code 1, 4.1 s')
  expect(text('SpawnRefused', { rule: 'depth', step: null })).toBe('Spawn refused: rule depth')
  expect(text('SpawnRequested', { requestedAgentId: 'writer', label: 'tides', requester: { sessionKey: 'agent:main:customer-7' } })).toBe('Spawn requested: agent writer, label tides, for main · customer-7')
  expect(text('EffectAttempted', { kind: 'webhook', name: 'crm', attempt: 1, statusCode: 500, outcome: null, error: { id: 'x' }, retryAfterSeconds: 2 }))
    .toBe('Webhook attempted: crm, attempt 1, failed, HTTP 500, again in 2.0 s')
  expect(text('EffectAttempted', { kind: 'webhook', name: 'crm', attempt: 2, statusCode: 204, outcome: null, error: null, retryAfterSeconds: null }))
    .toBe('Webhook attempted: crm, attempt 2, done, HTTP 204')
  expect(text('EffectParked', { kind: 'hook', name: 'subagentSpawned', attempts: 1, reason: 'attempts' })).toBe('Hook parked: subagentSpawned, gave up after 1 attempt')
  expect(text('StopRequested', { by: 'admin', byRequester: false, reason: { id: 'x', bytes: 6 } })).toBe('Stop requested: by admin, with a reason')
  expect(text('StopRequested', { by: 'admin', byRequester: false, reason: null })).toBe('Stop requested: by admin')
})

test('an event of another type shows its short values, and hides nothing', () => {
  expect(text('SomethingNew', { runId: 'r', reason: 'why\u202e', isSet: false, text: { id: 'x' }, laneDepth: 2 })).toBe('Something new: reason why⟨202E⟩, lane depth 2')
  expect(happened({ type: 'SessionObserved', payload: {} })).toEqual({ what: 'Session observed', facts: '' })
})

test('types are read from a text, and the frequent ones come first', () => {
  expect(typesOf(' SpawnRefused,RunEnded  X')).toEqual(['SpawnRefused', 'RunEnded', 'X'])
  expect(frequentTypes([{ type: 'A' }, { type: 'B' }, { type: 'B' }, { type: 'C' }], 2)).toEqual(['B', 'A'])
})
