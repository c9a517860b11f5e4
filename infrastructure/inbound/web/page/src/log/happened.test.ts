import { expect, test } from 'vitest'

import type { EventView } from '../api/shapes'
import { causesOf, frequentTypes, goesOn, happened, typesOf, typeWords } from './happened'

const text = (type: string, payload: EventView['payload'], known: Parameters<typeof happened>[1] = {}): string => Object.values(happened({ type, payload }, known)).join(': ')

test('each event says what happened', () => {
  expect(text('RunQueued', { lane: 'subagent', laneDepth: 1 })).toBe('Run queued: lane subagent, depth 1')
  expect(text('RunClaimed', { holder: 'vm', attempt: 1, laneWidth: 6, laneRunning: 0 })).toBe('Run claimed: slot 1 of 6')
  expect(text('RunClaimed', { holder: 'vm', attempt: 2, laneWidth: null, laneRunning: null })).toBe('Run claimed: taken over')
  expect(text('RunEnded', { outcome: 'error', reason: 'exit', exitCode: 1, runtimeMs: 4_100 })).toBe('Run ended: error, exit code 1, 4.1 s')
  expect(text('SpawnRefused', { rule: 'depth', step: null })).toBe('Spawn refused: too deep')
  expect(text('SpawnRequested', { requestedAgentId: 'writer', label: 'tides', requester: { sessionKey: 'agent:main:customer-7' } })).toBe('Spawn requested: agent writer, label tides, for main · customer-7')
  expect(text('EffectAttempted', { kind: 'webhook', name: 'crm', attempt: 1, statusCode: 500, outcome: null, error: { id: 'x' }, retryAfterSeconds: 2 }))
    .toBe('Delivery to crm failed: at attempt 1: HTTP 500, again in 2.0 s')
  expect(text('EffectAttempted', { kind: 'webhook', name: 'crm', attempt: 2, statusCode: 204, outcome: null, error: null, retryAfterSeconds: null }))
    .toBe('Delivery to crm done: at attempt 2: HTTP 204')
  expect(text('EffectParked', { kind: 'hook', name: 'subagentSpawned', attempts: 1, reason: 'attempts' })).toBe('Hook subagentSpawned parked: after 1 attempt')
  expect(text('EffectParked', { kind: 'webhook', name: 'crm', attempts: 0, reason: 'not_configured' })).toBe('Delivery to crm parked: after 0 attempts, not configured')
  expect(text('EffectRedriven', { kind: 'webhook', name: 'crm', by: 'admin', reason: { id: 'x', bytes: 6 } })).toBe('Delivery to crm asked again: by admin, with a reason')
  expect(text('EffectAttempted', { kind: 'undo', name: 'lease', attempt: 1, statusCode: null, outcome: 'no_hook', error: null, retryAfterSeconds: null }))
    .toBe('Undo of lease done: at attempt 1: no hook')
  expect(text('StopRequested', { by: 'admin', byRequester: false, reason: { id: 'x', bytes: 6 } })).toBe('Stop requested: by admin, with a reason')
  expect(text('StopRequested', { by: 'admin', byRequester: false, reason: null })).toBe('Stop requested: by admin')
})

test('a delivery says why it was parked and why it was asked again, if that is known', () => {
  const effect = (position: number, type: string, payload: EventView['payload'], runId = 'r') => ({ position, type, runId, payload: { kind: 'webhook', name: 'crm', ...payload } })
  const events = [
    effect(1, 'EffectAttempted', { statusCode: 500, error: { id: 'x' } }), effect(2, 'EffectParked', { attempts: 1, reason: 'attempts' }),
    effect(3, 'EffectAttempted', { statusCode: null, error: { id: 'x' } }, 'other'), effect(4, 'EffectParked', { attempts: 2, reason: 'attempts' }, 'other'),
    effect(5, 'EffectParked', { attempts: 2, reason: 'attempts' }, 'third'),
  ]
  const causes = causesOf([...events].reverse())
  expect([...causes]).toEqual([[2, 'HTTP 500'], [4, 'no answer']])
  expect(text('EffectParked', events[1]!.payload, { cause: causes.get(2) })).toBe('Delivery to crm parked: after 1 attempt: HTTP 500')
  const again = { kind: 'webhook', name: 'crm', by: 'admin', reason: { id: 'x', bytes: 6 } }
  expect(text('EffectRedriven', again, { texts: { reason: 'crm up' } })).toBe('Delivery to crm asked again: by admin: crm up')
  const failed = { kind: 'webhook', name: 'crm', attempt: 1, statusCode: null, outcome: null, error: { id: 'x' }, retryAfterSeconds: null }
  expect(text('EffectAttempted', failed, { texts: { error: 'connection refused' } })).toBe('Delivery to crm failed: at attempt 1: connection refused')
})

test('a type of event that deliveries, hooks and undos share names them', () => {
  expect(['EffectParked', 'EffectRedriven', 'RunEnded'].map(typeWords)).toEqual(['Delivery, hook or undo parked', 'Delivery, hook or undo asked again', 'Run ended'])
})

test('facts that go on with the words need no colon', () => {
  expect(['by admin: crm up', 'after 1 attempt', 'at attempt 1: HTTP 500', 'attached', 'slot 1 of 8', ''].map(goesOn)).toEqual([true, true, true, false, false, false])
})

test('an event of another type shows its short values, and hides nothing', () => {
  expect(text('SomethingNew', { runId: 'r', reason: 'why\u202e', isSet: false, text: { id: 'x' }, laneDepth: 2 })).toBe('Something new: reason why⟨202E⟩, lane depth 2')
  expect(happened({ type: 'SessionObserved', payload: {} })).toEqual({ what: 'Session observed', facts: '' })
})

test('types are read from a text, and the frequent ones come first', () => {
  expect(typesOf(' SpawnRefused,RunEnded  RunQueued')).toEqual(['SpawnRefused', 'RunEnded', 'RunQueued'])
  expect(typesOf('spawn refused,  Run ended,')).toEqual(['SpawnRefused', 'RunEnded'])
  expect(typesOf('SpawnRefused RUN ENDED')).toEqual(['SpawnRefused', 'RunEnded'])
  expect(typesOf(' ')).toEqual([])
  const types = ['EffectParked', 'RunQueued', 'EffectRedriven', 'AnnouncementAcknowledged']
  expect(typesOf(types.map(typeWords).join(', '))).toEqual(types)
  expect(frequentTypes([{ type: 'A' }, { type: 'B' }, { type: 'B' }, { type: 'C' }], 2)).toEqual(['B', 'A'])
})
