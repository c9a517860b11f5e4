import { expect, test } from 'vitest'

import { readRange } from './range'

const context = { now: Date.parse('2026-11-26T09:30:00Z'), timeZone: 'UTC', head: 500 }

test('both ends take what the control of the moment takes', () => {
  expect(readRange('yesterday 18:00', '9:00', context, true)).toEqual({ from: '2026-11-25T18:00:00Z', to: '2026-11-26T09:00:00Z', problem: null })
  expect(readRange('pos:12', '', context, true)).toEqual({ from: 'pos:12', to: null, problem: null })
})

test('a time ago is before the moment that is shown', () => {
  expect(readRange('1h', '', context, true).from).toBe('-1h')
  expect(readRange('1h', '', context, false).from).toBe('2026-11-26T08:30:00.000Z')
  // Before all instants that a date can be: the server says so.
  expect(readRange('9999999999w', '', context, false).from).toBe('-9999999999w')
})

test('what is no time asks for nothing', () => {
  expect(readRange('tomorrow', '9:00', context, true)).toEqual({
    from: null, to: null, problem: '"tomorrow" is not a time I understand. Try 2026-11-25 18:00, 20 min ago, or a position such as 120.',
  })
})
