import { describe, expect, test } from 'vitest'

import { differences } from './difference'

const of = (left: unknown, right: unknown) => differences(left, right).items

describe('two values', () => {
  test('that say the same in another order do not differ', () => {
    expect(of({ a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1 })).toEqual([])
  })

  test('differ where a member is gone, new or another one', () => {
    expect(of({ same: 1, gone: 2, 'a/b~c': { deep: 3 } }, { same: 1, 'a/b~c': { deep: 4 }, more: [] })).toEqual([
      { pointer: '/gone', kind: 'removed', before: 2 },
      { pointer: '/a~1b~0c/deep', kind: 'changed', before: 3, after: 4 },
      { pointer: '/more', kind: 'added', after: [] },
    ])
  })

  test.each([[1, true], [null, 0], ['', null], [{}, []], [{ a: 1 }, null]])('of two types are two things: %j, %j', (left, right) => {
    expect(of({ at: left }, { at: right })).toEqual([{ pointer: '/at', kind: 'changed', before: left, after: right }])
  })

  test('with names that objects have anyway', () => {
    expect(of({}, { constructor: 1, toString: 2 })).toHaveLength(2)
    expect(of(JSON.parse('{"__proto__": 1}'), JSON.parse('{"__proto__": 2}'))).toEqual([
      { pointer: '/__proto__', kind: 'changed', before: 1, after: 2 },
    ])
  })
})

describe('items of two lists', () => {
  const [main, writer, other] = [{ id: 'main', tools: ['a', 'b'] }, { id: 'writer' }, { id: 'other' }]

  test('that have an id are compared with the same one', () => {
    expect(of([main, writer], [other, { id: 'main', tools: ['a'] }])).toEqual([
      { pointer: '/1/tools/1', kind: 'removed', before: 'b' },
      { pointer: '/1', kind: 'removed', before: writer },
      { pointer: '/0', kind: 'added', after: other },
    ])
  })

  test('that have an id and another order say so once', () => {
    expect(of({ list: [main, writer] }, { list: [writer, main] })).toEqual([
      { pointer: '/list', kind: 'moved', before: ['main', 'writer'], after: ['writer', 'main'] },
    ])
  })

  test('that have none stay where both have them, and are compared in between', () => {
    expect(of(['a', 'b', 'z'], ['a', 'c', 'd', 'z'])).toEqual([
      { pointer: '/1', kind: 'changed', before: 'b', after: 'c' },
      { pointer: '/2', kind: 'added', after: 'd' },
    ])
    expect(of(['writer', 'reviewer'], ['writer'])).toEqual([{ pointer: '/1', kind: 'removed', before: 'reviewer' }])
    expect(of([], [1])).toEqual([{ pointer: '/0', kind: 'added', after: 1 }])
  })

  test('that share an id are compared by their places', () => {
    expect(of([main, main], [main, { ...main, tools: [] }]).map((one) => one.pointer)).toEqual(['/1/tools/0', '/1/tools/1'])
  })
})

test('more differences than anybody reads are cut', () => {
  const many = Object.fromEntries([...Array(1_000).keys()].map((key) => [key, key]))
  expect(differences({}, many, { most: 10 })).toMatchObject({ isCut: true, items: { length: 10 } })
  expect(differences({}, { a: 1 }, { most: 1 }).isCut).toBe(false)
})
