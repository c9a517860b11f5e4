import { expect, test } from 'vitest'

import { usedModels } from './models'

test('the reported models are shown beside another given one', () => {
  expect(usedModels(['acme/large', 'acme/large', null], 'acme/small')).toEqual(['acme/large'])
  expect(usedModels(['small', 'acme/large'], 'acme/small')).toEqual(['small', 'acme/large'])
  expect(usedModels(['large'], '')).toEqual(['large'])
})

test('the given model is shown once', () => {
  expect(usedModels(['acme/small', 'small'], 'acme/small')).toEqual([])
  expect(usedModels([], 'acme/small')).toEqual([])
  expect(usedModels([null], '')).toEqual([])
})
