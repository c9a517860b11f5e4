import { expect, test } from 'vitest'

import { valueInForce, wayOut } from './way_out'

const CHILDREN = '/agents/defaults/subagents/maxChildrenPerAgent'

test('a full cap names its setting, its value and the next one that has room', () => {
  const refusal = { rule: 'active_children' as const, compared: { activeChildren: 5, maxChildren: 5 } }
  expect(wayOut(refusal, CHILDREN)).toMatchObject({
    setting: 'agents.defaults.subagents.maxChildrenPerAgent', value: 5, change: { pointer: CHILDREN, value: 6, name: '6' },
  })
  expect(wayOut({ ...refusal, compared: { activeChildren: 4, maxChildren: 5, places: 3 } }, CHILDREN)?.change?.value).toBe(7)
  expect(wayOut({ ...refusal, compared: { activeChildren: 20, maxChildren: 20 } }, CHILDREN)?.change).toBeNull()
  expect(wayOut(refusal, null)).toMatchObject({ setting: 'agents.defaults.subagents.maxChildrenPerAgent', value: 5, change: null })
})

test('a depth that is not recorded proposes nothing', () => {
  expect(wayOut({ rule: 'depth', compared: { callerDepth: 1, maxSpawnDepth: 1 } }, '/agents/defaults/subagents/maxSpawnDepth')?.change?.value).toBe(2)
  expect(wayOut({ rule: 'depth', compared: null }, '/agents/defaults/subagents/maxSpawnDepth')?.change).toBeNull()
})

test('an agent is added to the list of its requester', () => {
  const compared = { requesterAgentId: 'two', targetAgentId: 'coder', allowAgents: ['a'], from: 'agent' }
  expect(wayOut({ rule: 'allow_agents', compared }, '/agents/list/1/subagents/allowAgents')).toMatchObject({
    setting: 'agents.list[1].subagents.allowAgents', value: ['a'], change: { value: ['a', 'coder'], name: 'coder is allowed' },
  })
  expect(wayOut({ rule: 'allow_agents', compared: { ...compared, allowAgents: null } }, null)).toMatchObject({
    setting: 'agents.list[].subagents.allowAgents', value: undefined, change: null,
  })
})

test('the value in force is that of the agent, else of all', () => {
  const refusal = { rule: 'allow_agents' as const, compared: { requesterAgentId: 'two', targetAgentId: 'coder', allowAgents: null, from: 'defaults' } }
  const defaults = { subagents: { allowAgents: ['*'] } }
  expect(valueInForce(refusal, { agents: { defaults } })).toEqual(['*'])
  expect(valueInForce(refusal, { agents: { defaults, list: [{ id: 'Two', subagents: { allowAgents: ['a'] } }] } })).toEqual(['a'])
  expect(valueInForce(refusal, { agents: {} })).toBeUndefined()
  expect(valueInForce({ rule: 'thinking', compared: null }, { agents: { defaults } })).toBeUndefined()
})

test('a rule without a setting says the next step, and a choice says nothing', () => {
  expect(wayOut({ rule: 'context_engine', compared: null }, null)).toMatchObject({ setting: null, change: null })
  expect(wayOut({ rule: 'model', compared: null }, null)).toBeNull()
})
