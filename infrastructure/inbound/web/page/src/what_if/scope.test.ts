import { describe, expect, test } from 'vitest'

import type { TotalsView } from '../api/shapes'
import { testedText, verdictSentence } from './scope'

describe('what is tested', () => {
  test.each([
    [{}, '', '', 'All runs are tested.'],
    [{ requester: 'agent:main:rush' }, '2026-11-28 00:00', '', 'All runs of main · rush since 2026-11-28 00:00 are tested.'],
    [{ tree: 'main', agentId: ['coder', 'counter'] }, '1h', '12:00', 'All runs in the tree of main for agent coder or counter since 1h ago until 12:00 are tested.'],
    [{}, 'an hour', '-20 minutes ago', 'All runs since an hour ago until 20 minutes ago are tested.'],
    [{}, '1.5 Hours ago', '5 parsecs', 'All runs since 1.5 Hours ago until 5 parsecs are tested.'],
    [{ requester: 'a\u202eb' }, '', 'pos:9', 'All runs of a⟨202E⟩b until pos:9 are tested.'],
    [{ runId: '15845153-8148-4276-b743-ccf1f2581fa4' }, '1h', '', 'Only run 15845153 is tested.'],
  ])('%j from %s to %s', (filter, from, to, said) => {
    expect(testedText(filter, from, to, true)).toBe(said)
    expect(testedText(filter, from, to, false)).toBe(said.replace(/(is|are) tested/, 'will be tested'))
  })
})

describe('the answer in a sentence', () => {
  const totals = (byVerdict: Record<string, number>): TotalsView => ({
    fromPosition: 1, toPosition: 9, decisions: Object.values(byVerdict).reduce((sum, one) => sum + one, 0), byVerdict, byAgent: {}, byRule: {},
  })
  const rush = { requester: 'rush' }
  test.each([
    [{ same: 5, 'newly-allowed': 3 }, rush, 3, 'Yes: all 3 refused runs of rush would be allowed. Nothing else changes.'],
    [{ same: 6, 'newly-allowed': 2 }, rush, 3, '2 of 3 refused runs of rush would be allowed. Nothing else changes.'],
    [{ same: 8 }, rush, 3, 'No: all 3 refused runs of rush would still be refused. Nothing else changes.'],
    [{ 'newly-allowed': 1 }, { runId: 'x' }, 1, 'Yes: the refused run would be allowed.'],
    [{ same: 1 }, { runId: 'x' }, 1, 'No: the refused run would still be refused.'],
    [{ 'newly-allowed': 1, 'newly-refused': 4, same: 9 }, {}, 1, 'Yes: the refused run would be allowed. 4 allowed runs would be refused.'],
    [{ 'newly-refused': 1, 'different-model': 2, same: 9 }, {}, 0, '1 of 12 allowed runs would be refused. 2 other decisions would differ.'],
    [{ 'different-model': 2, same: 10 }, {}, 0, '2 of 12 decisions would differ.'],
    [{ same: 12 }, {}, 0, 'Nothing changes: all 12 decisions would be the same.'],
    [{ same: 11, 'not-replayable': 1 }, {}, 3, '1 decision lacks a recorded fact. Nothing else changes.'],
    [{ same: 11, 'newly-allowed': 2 }, {}, null, '2 refused runs would be allowed. Nothing else changes.'],
    [{ same: 11, 'newly-refused': 2 }, {}, null, '2 allowed runs would be refused.'],
  ])('%j of %j with %s refused', (byVerdict, filter, refused, said) => {
    expect(verdictSentence(totals(byVerdict), filter, refused)).toBe(said)
  })
})
