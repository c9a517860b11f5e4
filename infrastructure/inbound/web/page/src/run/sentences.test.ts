import { expect, test } from 'vitest'

import { changedText, fieldsOf, toldOf, wordsOf } from './sentences'

test('an event type reads as words', () => {
  expect(wordsOf('RunStarted')).toBe('Run started')
  expect(wordsOf('AnnouncementAcknowledged')).toBe('Announcement acknowledged')
})

test('the fields that say most are told, of a traceback its last line', () => {
  expect(toldOf([
    { op: 'replace', path: '/lane', value: 'main' }, { op: 'replace', path: '/status', value: 'failed' },
    { op: 'add', path: '/error', value: 'Traceback:\n  x\nTimeoutError: tide\n' }, { op: 'replace', path: '/version', value: 3 },
    { op: 'replace', path: '/label', value: null },
  ])).toBe('status failed, lane main, error TimeoutError: tide')
})

test('a stop has its reason', () => {
  expect(toldOf([{ op: 'add', path: '/stopReason', value: 'enough' }, { op: 'add', path: '/stopRequestedBy', value: 'admin' }])).toBe('reason enough')
})

test('each field that changed is named once, but the version', () => {
  expect(fieldsOf([{ op: 'add', path: '/stages/0', value: 1 }, { op: 'add', path: '/stages/1', value: 1 }, { op: 'replace', path: '/version', value: 2 }]))
    .toEqual(['stages'])
})

test('the first event of a run counts its fields, and a later one names them', () => {
  expect(changedText(1, ['runId', 'task'])).toBe('Created with 2 fields')
  expect(changedText(3, ['announcedAt', 'agentId'])).toBe('2 fields changed: announced at, agent')
  expect(changedText(2, ['status'])).toBe('1 field changed: status')
})
