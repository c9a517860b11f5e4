import { expect, test } from 'vitest'

import { progressText, Redelivery } from './redelivery'

const event = (type: string, runId: string, name: string, more: Record<string, unknown> = {}, kind = 'webhook') =>
  ({ type, runId, payload: { kind, name, ...more } })
const sent = (...runs: string[]): Redelivery => {
  const redelivery = new Redelivery()
  redelivery.add(runs.map((runId) => ({ runId, webhooks: ['crm'] })), 5)
  return redelivery
}

test('deliveries are told as they come: delivered, parked again with the answer, and being delivered', () => {
  const redelivery = sent('a', 'b', 'c')
  const text = (): string => progressText(redelivery.progress())
  expect(text()).toBe('3 announcements sent again: 0 delivered, 3 being delivered.')
  redelivery.take(event('EffectAttempted', 'a', 'crm', { statusCode: 204 }))
  redelivery.take(event('EffectAttempted', 'b', 'crm', { statusCode: 500, error: { id: 'x' }, retryAfterSeconds: 5 }))
  expect(text()).toBe('3 announcements sent again: 1 delivered, 2 being delivered, 1 of them after a failed attempt (HTTP 500).')
  redelivery.take(event('EffectAttempted', 'b', 'crm', { statusCode: 500, error: { id: 'x' } }))
  redelivery.take(event('EffectParked', 'b', 'crm', { reason: 'attempts' }))
  redelivery.take(event('EffectAttempted', 'c', 'crm', { error: { id: 'x' } }))
  redelivery.take(event('EffectParked', 'c', 'crm', { reason: 'attempts' }))
  expect(text()).toBe('3 announcements sent again: 1 delivered, 2 parked again (HTTP 500, no answer).')
})

test('one announcement is delivered when each of its webhooks has it', () => {
  const redelivery = new Redelivery()
  redelivery.add([{ runId: 'a', webhooks: ['crm', 'ops'] }], 5)
  redelivery.take(event('EffectAttempted', 'a', 'crm', { statusCode: 200 }))
  expect(redelivery.progress()).toMatchObject({ announcements: 1, delivered: 0, due: 1 })
  redelivery.take(event('EffectAttempted', 'a', 'ops', { statusCode: 200 }))
  expect(redelivery.progress()).toMatchObject({ announcements: 1, delivered: 1, due: 0 })
})

test('events of before, of other runs, of other webhooks and of hooks do not count', () => {
  const redelivery = sent('a')
  redelivery.take(event('EffectParked', 'a', 'crm'))
  redelivery.take(event('EffectRedriven', 'a', 'crm'))
  redelivery.take(event('EffectParked', 'b', 'crm'))
  redelivery.take(event('EffectParked', 'a', 'ops'))
  redelivery.take(event('EffectParked', 'a', 'crm', {}, 'hook'))
  expect(redelivery.progress()).toMatchObject({ failed: 0, due: 1 })
})

test('what is sent while others are on their way is counted with them, and later ones begin anew', () => {
  const redelivery = sent('a', 'b')
  redelivery.position = 9
  redelivery.take(event('EffectAttempted', 'a', 'crm', { statusCode: 204 }))
  redelivery.add([{ runId: 'c', webhooks: ['crm'] }], 7)
  expect(redelivery.position).toBe(7)
  expect(redelivery.progress()).toMatchObject({ announcements: 3, delivered: 1, due: 2 })
  for (const runId of ['b', 'c']) redelivery.take(event('EffectAttempted', runId, 'crm', { statusCode: 204 }))
  expect(redelivery.progress()).toMatchObject({ announcements: 3, delivered: 3, due: 0 })
  redelivery.add([{ runId: 'd', webhooks: ['crm'] }], 20)
  expect(redelivery.position).toBe(20)
  expect(redelivery.progress()).toMatchObject({ announcements: 1, delivered: 0, due: 1 })
})
