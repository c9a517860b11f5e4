import { expect, test } from 'vitest'

import type { ReachedStageView, RunSummary } from '../api/shapes'
import { startOf, stepsOf } from './stages'

const SECONDS = '2026-03-01T09:00:0'
const at = (stage: ReachedStageView['stage'], seconds: string, position: number): ReachedStageView => ({ stage, at: `${SECONDS}${seconds}Z`, position })
const REQUESTED = [at('requested', '0.000', 1), at('scripts-resolved', '0.050', 2), at('session-created', '0.100', 3)]
const RAN = [...REQUESTED, at('queued', '0.107', 4), at('started', '0.459', 5), at('ended', '4.559', 6)]
const steps = (status: RunSummary['status'], stages: ReachedStageView[], now: string | null = null, dependsOn: unknown[] = [], state: RunSummary['announcement']['state'] = 'delivered') =>
  stepsOf({ status, stages, dependsOn, announcement: { state } } as Parameters<typeof stepsOf>[0], now === null ? null : Date.parse(`${SECONDS}${now}Z`))
    .map((one) => [one.name, one.state, one.position, one.ms])

test('a run that ended was prepared, queued, ran and was announced', () => {
  expect(steps('failed', [...RAN, at('announced', '5.000', 7), at('archived', '9.000', 8)])).toEqual([
    ['prepared', 'preparing', 4, 107], ['queued', 'queued', 5, 352], ['ran', 'failed', 6, 4_100], ['announced', null, 7, null], ['archived', null, 8, null],
  ])
})

test.each([
  ['acknowledged', 'announced'],
  ['skipped', 'announcement skipped'],
  ['not_required', 'announcement not required'],
] as const)('an announcement that is %s is %s among the stages', (state, name) => {
  expect(steps('stopped', [...RAN, at('announced', '5.000', 7)], null, [], state).at(-1)).toEqual([name, null, 7, null])
})

test('the step that a run is at goes on to the moment', () => {
  expect(steps('running', RAN.slice(0, -1), '2.459')).toEqual([['prepared', 'preparing', 4, 107], ['queued', 'queued', 5, 352], ['running', 'running', 5, 2_000]])
  expect(steps('preparing', REQUESTED.slice(0, 1))).toEqual([['preparing', 'preparing', 1, null]])
})

test('a run that depends on others waited after its session was created', () => {
  expect(steps('waiting', REQUESTED, '3.100', [{}])).toEqual([['prepared', 'preparing', 3, 100], ['waiting', 'waiting', 3, 3_000]])
  expect(steps('stopped', [...REQUESTED, at('ended', '3.100', 4)], null, [{}])).toEqual([['prepared', 'preparing', 3, 100], ['waited', 'waiting', 4, 3_000], ['stopped', null, 4, null]])
})

test('a run that was stopped before its start says so', () => {
  expect(steps('stopped', [REQUESTED[0]!, at('ended', '0.500', 2)])).toEqual([['prepared', 'preparing', 2, 500], ['stopped', null, 2, null]])
})

test('a run that was refused at once has that stage alone, without a bar', () => {
  const refused = [['refused', null, 2, null]]
  expect(steps('refused', [REQUESTED[0]!, at('refused', '0.000', 2)])).toEqual(refused)
  expect(steps('refused', [REQUESTED[0]!, at('refused', '0.010', 2)])).toEqual(refused)
})

test.each([
  ['refused', null, true, 'The run was refused: its child never started.'],
  ['stopped', '2026-03-01T09:00:00Z', true, 'The run ended before its child started.'],
  ['queued', null, true, 'The child had not started yet.'],
  ['queued', null, false, 'The child had not started at this moment.'],
] as const)('a %s run without a start explains it', (status, endedAt, isLive, text) => {
  expect(startOf({ status, endedAt }, isLive)).toBe(text)
})
