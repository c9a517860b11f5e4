import { expect, test } from 'vitest'

import type { WhatIfVerdictView } from '../api/shapes'
import { inOrder, KeptRows, matrixOf, rowOf, ROWS_MAX, verdictName } from './decided'

const VERDICT: WhatIfVerdictView = {
  runId: 'r', position: 7, kind: 'spawn', agentId: null, label: null, requesterSessionKey: 'k', configRevision: 1,
  verdict: 'different-plan', rule: null, text: null, difference: { field: '/model', recorded: null, decided: 'x'.repeat(9_999) },
  missing: [], assumed: [],
}

test('the agents that the most is changed for come first, and verdicts that nobody has are left out', () => {
  const matrix = matrixOf({
    fromPosition: 1, toPosition: 9, decisions: 12,
    byVerdict: { same: 9, 'newly-allowed': 2, 'newly-refused': 1, 'different-plan': 0 },
    byAgent: { calm: { same: 9 }, torn: { 'newly-allowed': 2, 'newly-refused': 1 } },
    byRule: { depth: { 'newly-refused': 1 }, allow_agents: { 'newly-allowed': 2 } },
  })
  expect(matrix.verdicts.map((one) => one.name)).toEqual(['newly-refused', 'newly-allowed', 'same'])
  expect(matrix.verdicts.map((one) => verdictName(one.name))).toEqual(['newly refused', 'newly allowed', 'unchanged'])
  expect(matrix.agents).toEqual([{ name: 'torn', counts: [1, 2, 0], changed: 3 }, { name: 'calm', counts: [0, 0, 9], changed: 0 }])
  expect(matrix.rules.map((one) => one.name)).toEqual(['allow_agents', 'depth'])
})

test('a row keeps the beginning of what differs, however long that is', () => {
  const row = rowOf(VERDICT)
  expect(row.first).toMatch(/^model: none → x/)
  expect(row.first.length).toBe(300)
})

test.each([
  ['/rule', 'active_children', null, 'refused: too many children at once → accepted'],
  ['/rule', null, 'allow_agents', 'accepted → refused: agent not allowed'],
  ['/rule', 'depth', 'active_children', 'refused: too deep → refused: too many children at once'],
  ['/maxSpawnDepth', 2, 3, 'maximum depth: 2 → 3'],
  ['/tools/deny', ['exec'], [], 'denied tools: exec → none'],
  ['/sandboxed', true, false, 'sandboxed: yes → no'],
  ['/prompt/systemPrompt/template', 600, 720, 'system prompt, from template: 600 → 720 bytes'],
  ['/contextScripts', [{ script: 'style', bytes: 9, hmac: 'a' }], [{ script: 'style', bytes: 1_900, hmac: 'b' }], 'context scripts: style (9 bytes) → style (1,900 bytes)'],
  ['/contextScripts', [{ script: 'style', bytes: 9, hmac: 'a' }], [{ script: 'style', bytes: 9, hmac: 'b' }], 'context scripts: changed'],
  ['/later/than/this', 'a', 'b', 'later, than, this: a → b'],
])('the difference at %s is in words, its pointer in the title', (field, recorded, decided, words) => {
  const row = rowOf({ ...VERDICT, difference: { field, recorded, decided } })
  expect([row.first, row.pointer]).toEqual([words, field])
})

test('of very many rows the first are kept, and the others counted', () => {
  const kept = new KeptRows()
  for (let position = 0; position < ROWS_MAX + 5; position += 1) kept.take({ ...VERDICT, position })
  expect([kept.rows.length, kept.left, kept.rows.at(-1)?.position]).toEqual([ROWS_MAX, 5, ROWS_MAX - 1])
})

test('runs that are newly refused or allowed come first', () => {
  const row = (position: number, verdict: WhatIfVerdictView['verdict']) => rowOf({ ...VERDICT, position, verdict })
  const rows = [row(1, 'same'), row(2, 'different-plan'), row(9, 'newly-allowed'), row(4, 'newly-allowed'), row(5, 'newly-refused')]
  expect(inOrder(rows).map((one) => one.position)).toEqual([5, 4, 9, 2, 1])
})
