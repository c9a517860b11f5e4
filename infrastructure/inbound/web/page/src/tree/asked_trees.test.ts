import { expect, test } from 'vitest'

import { askedTrees } from './asked_trees'

test('an address names no more trees than a server and a proxy take', () => {
  expect(askedTrees(['b', 'a'])).toEqual(['a', 'b'])
  const long = Array.from({ length: 50 }, (_, n) => `agent:main:${'ü'.repeat(100)}${n}`)
  const asked = askedTrees(long)
  expect(asked.length).toBeGreaterThan(5)
  expect(new URLSearchParams(asked.map((tree) => ['tree', tree])).toString().length).toBeLessThan(8_000)
  // One that is too long is left out; those after it are not.
  expect(askedTrees(['x'.repeat(9_000), 'main'])).toEqual(['main'])
  expect(askedTrees(Array.from({ length: 80 }, (_, n) => String(n)))).toHaveLength(50)
})
