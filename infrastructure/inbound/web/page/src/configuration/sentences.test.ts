import { expect, test } from 'vitest'

import { changesBetween, reads } from './sentences'

const config = (allowed: string[], width: number, more: object[] = []) => ({
  agents: { list: [{ id: 'planner', subagents: { allowAgents: allowed } }, ...more], defaults: { subagents: { maxConcurrent: width } } },
})

test('an agent lost and gained what it may spawn, whatever the order', () => {
  const { groups } = changesBetween(config(['counter', 'writer', 'reviewer'], 16), config(['tester', 'writer'], 24))
  expect(groups.map(({ subject }) => subject)).toEqual(['Agent planner', 'All agents (defaults)'])
  expect(groups[0]!.changes).toMatchObject([{ setting: 'allowAgents', lost: ['counter', 'reviewer'], gained: ['tester'], pointer: '/agents/list/0/subagents/allowAgents' }])
  expect(groups[1]!.changes).toMatchObject([{ setting: 'maxConcurrent', kind: 'changed', before: 16, after: 24, lost: [], gained: [] }])
})

test('an agent that is new or gone is one change', () => {
  const { groups } = changesBetween(config([], 1, [{ id: 'old' }]), config([], 1, [{ id: 'new' }]))
  expect(groups).toMatchObject([
    { subject: 'Agent old', changes: [{ kind: 'removed', setting: '' }] }, { subject: 'Agent new', changes: [{ kind: 'added', setting: '' }] },
  ])
})

test('a list in another order lost and gained nothing', () => {
  expect(changesBetween({ tools: ['a', 'b'] }, { tools: ['b', 'a'] }).groups).toMatchObject([{ subject: 'tools', changes: [{ setting: '', lost: [], gained: [] }] }])
  expect(changesBetween({ tools: ['a', 'a'] }, { tools: ['a'] }).groups[0]!.changes[0]).toMatchObject({ lost: ['a'], gained: [] })
})

test('an item of a list is called by its name', () => {
  const models = (cost: number) => ({ models: { providers: { acme: { models: [{ id: 'big', cost }] } } } })
  expect(changesBetween(models(1), models(2)).groups).toMatchObject([{ subject: 'models', changes: [{ setting: 'providers.acme.models.big.cost' }] }])
})

test('texts read without quotes', () => {
  expect([reads('a'), reads(1), reads(['a'])]).toEqual(['a', '1', '["a"]'])
})
