import { expect, test } from 'vitest'

import { agentsText, runName } from './names'

const RUN = { runId: '15845153-8148-4276-b743-ccf1f2581fa4', agentId: 'tides', requestedAgentId: null, label: null, taskPreview: 'Count\nall' }

test('a run is named by its agent and its label, its task or its short id', () => {
  expect(runName({ ...RUN, label: 'harbour' })).toBe('tides · harbour')
  expect(runName(RUN)).toBe('tides · Count')
  expect(runName({ ...RUN, agentId: null, requestedAgentId: 'nobody', taskPreview: null })).toBe('nobody · 15845153')
  expect(runName({ ...RUN, agentId: null, label: 'a\u202eb' })).toBe('a⟨202E⟩b')
})

test('agents with the most runs come first, the others are counted', () => {
  expect(agentsText({ main: 2 })).toBe('main')
  expect(agentsText({ a: 1, b: 4, c: 2, d: 1, e: 1 })).toBe('b 4, c 2, a 1 and 2 more')
})
