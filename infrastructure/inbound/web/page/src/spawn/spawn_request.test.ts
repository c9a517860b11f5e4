import { expect, test } from 'vitest'

import { fieldProblems, spawnBody } from './spawn_request'

const EMPTY = { agent: '', task: '', label: '', sharedContext: '', requester: 'main', model: '', timeout: '' }

test('empty fields are left to the defaults of the server', () => {
  expect(spawnBody({ ...EMPTY, task: 'Say hello' }).body).toEqual({ requester: { sessionKey: 'main' }, task: 'Say hello' })
})

test('every field is in the body', () => {
  const fields = { agent: ' tides ', task: ' as written\n', label: 'one', sharedContext: '{"goal": {"deep": [1]}}', requester: 'agent:main:x', model: 'acme/big', timeout: '600' }
  expect(spawnBody(fields).body).toEqual({
    requester: { sessionKey: 'agent:main:x' }, task: ' as written\n', agentId: 'tides', label: 'one', model: 'acme/big',
    runTimeoutSeconds: 600, sharedContext: { goal: { deep: [1] } },
  })
})

test('what cannot be sent is said at its field', () => {
  for (const sharedContext of ['{', '[]', '1', 'null', '"text"', '12345678901234567890']) {
    expect(Object.keys(spawnBody({ ...EMPTY, task: 'x', sharedContext }).problems ?? {})).toEqual(['sharedContext'])
  }
  expect(Object.keys(spawnBody({ ...EMPTY, task: ' \n', timeout: '-1' }).problems ?? {})).toEqual(['task', 'timeout'])
})

test('problems of an answer are placed by pointer, then by rule', () => {
  expect(fieldProblems({ errors: [{ pointer: '/label', detail: 'too long' }, { pointer: '/requester/sessionKey', detail: 'invalid' }, { pointer: '/thread', detail: 'no field' }] }))
    .toEqual({ label: 'too long', requester: 'invalid' })
  expect(fieldProblems({ rule: 'allow_agents', detail: 'not allowed' })).toEqual({ agent: 'not allowed' })
  expect(fieldProblems({ rule: 'active_children', detail: '5 of 5' })).toEqual({})
})
