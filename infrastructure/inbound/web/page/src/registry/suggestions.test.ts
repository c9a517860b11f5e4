import { expect, test } from 'vitest'

import { suggestions, type Known } from './suggestions'

const KNOWN: Known = {
  statuses: { failed: 3, done: 1_200 }, agents: { writer: 7, main: 2 }, rules: { depth: 4 },
  labels: ['customer-7', 'two words'], requesters: ['agent:main:main'], causes: ['TimeoutError: tide'],
}
const texts = (text: string, caret = text.length): string[] => suggestions(text, caret, KNOWN).items.map((item) => item.text)

test.each([
  ['', 0, ['label:', 'agent:', 'status:', 'rule:', 'tree:', 'requester:', 'cause:', 'since:']],
  ['r', 1, ['rule:', 'requester:']],
  ['lighthouse', 10, []],
  ['lighthouse ', 11, []],
  ['agent:', 6, ['agent:writer', 'agent:main']],
  ['agent:m', 7, ['agent:main']],
  ['agent:main', 10, []],
  ['agent:writer,m', 14, ['agent:writer,main']],
  ['rule:dep', 8, ['rule:depth', 'rule:dependency_unknown', 'rule:dependency_ambiguous', 'rule:dependency_cycle', 'rule:dependency_failed']],
  ['label:two', 9, ['label:="two words"']],
  ['label:two label:cust', 20, ['label:=customer-7']],
  ['label:=cust', 11, ['label:=customer-7']],
  ['label:=customer-7', 17, []],
  ['l', 1, ['label:', 'label:=']],
  ['tree:main', 9, ['tree:agent:main:main']],
  ['since:t', 7, ['since:today', 'since:yesterday']],
  ['sta tide', 3, ['status:']],
])('%s', (text, caret, expected) => {
  expect(texts(text, caret)).toEqual(expected)
})

test('values say how many runs have them', () => {
  const { items, from, to } = suggestions('x status:do', 11, KNOWN)
  expect({ items, from, to }).toEqual({ items: [{ text: 'status:done', hint: '1,200', isWhole: true }], from: 2, to: 11 })
})

test('a beginning that several labels share is offered before them', () => {
  const labels = ['customer-7', 'customer-8', 'customer-8-again', 'two words', 'two wishes', 'solo-1']
  const known = { ...KNOWN, labels }
  const offered = (text: string): [string, string][] => suggestions(text, text.length, known).items.map((item) => [item.text, item.hint])
  expect(offered('label:cust').slice(0, 2)).toEqual([['label:customer-', '3 labels begin so'], ['label:=customer-7', 'this label']])
  expect(offered('label:customer-')).toEqual([
    ['label:=customer-7', 'this label'], ['label:=customer-8', 'this label'], ['label:customer-8', 'and what begins so'], ['label:=customer-8-again', 'this label'],
  ])
  expect(offered('label:').slice(0, 2).map(([text]) => text)).toEqual(['label:customer-', 'label:=customer-7'])
  expect(offered('label:so')).toEqual([['label:=solo-1', 'this label']])
  expect(offered('label:solo-1')).toEqual([['label:=solo-1', 'this label'], ['label:solo-1', 'and what begins so']])
})

test('a rule is found by its name too, and the suggestion shows both', () => {
  const { items } = suggestions('rule:deep', 9, KNOWN)
  expect(items.map(({ text, hint }) => [text, hint])).toEqual([['rule:depth', 'too deep · 4']])
})
