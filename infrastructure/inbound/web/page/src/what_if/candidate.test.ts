import { describe, expect, test } from 'vitest'

import { choicesOf, fitting, offeredSettings, placedProblems, pointersOf, readSetting, settingOf, settingProblem, valueAt, writeSetting } from './candidate'

describe('a value that is set', () => {
  test('reads as it was written', () => {
    const setting = { pointer: '/agents/list/0/subagents/allowAgents', value: ['a=b', 'c'] }
    expect(readSetting(writeSetting(setting))).toEqual(setting)
  })

  test.each([['agents', '1'], ['/a', 'text'], ['/a', ''], ['/a~2', '1']])('is refused before it is asked: %s=%s', (pointer, text) => {
    expect(settingProblem(pointer, text)).not.toBeNull()
    expect(readSetting(`${pointer}=${text}`)).toBeNull()
  })

  test('is found in the configuration, whatever its name', () => {
    const content = { 'a/b': { '~': [1, { x: true }] }, text: 's' }
    expect(pointersOf(content, 10)).toEqual(['/a~1b/~0', '/a~1b/~0/1/x', '/text'])
    expect(pointersOf(content, 2)).toHaveLength(2)
    expect(pointersOf(content, 10).map((one) => valueAt(content, one))).toEqual([[1, { x: true }], true, 's'])
    expect([valueAt(content, '/no/such'), valueAt(content, '/constructor')]).toEqual([undefined, undefined])
  })
})

describe('the setting that a refusal compared', () => {
  const content = { agents: { defaults: { subagents: {} }, list: [{ id: 'one' }, { id: 'Two', subagents: { allowAgents: ['a'] } }] } }

  test('is among the defaults, or that of the requester alone', () => {
    expect(settingOf({ rule: 'active_children', compared: { activeChildren: 5 } }, content)).toBe('/agents/defaults/subagents/maxChildrenPerAgent')
    expect(settingOf({ rule: 'allow_agents', compared: { requesterAgentId: 'two', from: 'defaults' } }, content)).toBe('/agents/defaults/subagents/allowAgents')
    expect(settingOf({ rule: 'allow_agents', compared: { requesterAgentId: 'two', from: 'agent' } }, content)).toBe('/agents/list/1/subagents/allowAgents')
  })

  test('is found in an entry', () => {
    const keyed = { agents: { entries: { one: { subagents: {} }, Two: { subagents: { allowAgents: [] } } } } }
    expect(settingOf({ rule: 'allow_agents', compared: { requesterAgentId: 'two', from: 'agent' } }, keyed)).toBe('/agents/entries/Two/subagents/allowAgents')
  })

  test('is not guessed', () => {
    expect(settingOf({ rule: 'stopped', compared: null }, content)).toBeNull()
    expect(settingOf({ rule: 'require_agent_id', compared: { from: 'agent' } }, content)).toBeNull()
    expect(settingOf({ rule: 'depth', compared: null }, { agents: {} })).toBeNull()
    expect(settingOf({ rule: 'depth', compared: null }, null)).toBeNull()
  })
})

describe('what is wrong in a text', () => {
  test('is said at its lines', () => {
    const detail = 'the configuration cannot be used: here:3:5: spawnlog.x: is no setting\nhere:10: agents: is missing'
    expect(placedProblems(detail, 'here')).toEqual([
      { line: 3, said: 'spawnlog.x: is no setting' }, { line: 10, said: 'agents: is missing' },
    ])
  })

  test('is said of the request when it is of no line', () => {
    expect(placedProblems('no', 'here', [{ pointer: '/from', detail: 'is no moment' }])).toEqual([{ line: null, said: '/from: is no moment' }])
    expect(placedProblems('no', 'here')).toEqual([{ line: null, said: 'no' }])
  })
})

test('known values of a setting are offered', () => {
  const content = { agents: { defaults: { subagents: { requireAgentId: true, maxSpawnDepth: 2 } }, list: [{ id: 'main' }, { id: 'writer' }] } }
  expect(choicesOf(content, '/agents/defaults/subagents/requireAgentId')).toEqual(['true', 'false'])
  expect(choicesOf(content, '/agents/defaults/subagents/allowAgents')).toEqual(['["*"]', '["main"]', '["writer"]'])
  expect(choicesOf(content, '/agents/defaults/subagents/maxSpawnDepth')).toEqual([])
  expect(choicesOf(null, '')).toEqual([])
})

describe('a part of the name of a setting', () => {
  const content = { agents: { defaults: { subagents: { maxConcurrent: 8 } }, list: [{ id: 'main', subagents: { allowAgents: ['a'] } }] } }
  const offered = offeredSettings(content)
  const above = '/agents/defaults/subagents'

  test.each([
    ['maxChildren', [`${above}/maxChildrenPerAgent`]],
    ['MAXCONC', [`${above}/maxConcurrent`]],
    ['active children', [`${above}/maxChildrenPerAgent`]],
    ['max active children', [`${above}/maxChildrenPerAgent`]],
    ['allowAgents', ['/agents/list/0/subagents/allowAgents', `${above}/allowAgents`]],
    ['list/0/sub', ['/agents/list/0/subagents/allowAgents']],
    ['agents.list[0].subagents.allowAgents', ['/agents/list/0/subagents/allowAgents']],
    ['spawned of main', ['/agents/list/0/subagents/allowAgents']],
    ['nothing', []],
    [' ', []],
  ])('%s', (text, pointers) => {
    expect(fitting(offered, text)).toEqual(pointers)
  })

  test('finds unset settings only where they can be set', () => {
    expect(fitting(offeredSettings({ agents: {} }), 'maxChildren')).toEqual([])
    expect(offeredSettings(null)).toEqual([])
  })

  test('is no path, and the example is whole', () => {
    expect(settingProblem('maxChildren', '1')).toBe('No setting has “maxChildren” in its name. A path such as /agents/defaults/subagents/maxChildrenPerAgent names any setting.')
  })
})
