import { expect, test } from 'vitest'

import { differences } from '../configuration/difference'
import { pointersOf, readSetting, valueAt, writeSetting } from '../what_if/candidate'
import { isLongNumber, readJson } from './json'

test('a number that JavaScript cannot count is written as it was read', () => {
  const text = '{"a":[12345678901234567890,-9007199254740993],"b":9007199254740991,"c":0.30000000000000004,"d":"x: 12345678901234567890"}'
  const read = readJson(text) as { a: unknown[]; b: unknown }
  expect(JSON.stringify(read)).toBe(text)
  expect(read.b).toBe(9007199254740991)
  expect(read.a.map(isLongNumber)).toEqual([true, true])
  expect(JSON.stringify(readJson('12345678901234567890'))).toBe('12345678901234567890')
})

test('it is one value, for what compares and for what names it', () => {
  const [one, same, other] = ['12345678901234567890', '12345678901234567890', '12345678901234567891'].map((id) => readJson(`{"id": ${id}}`))
  expect(differences(one, same).items).toEqual([])
  expect(differences(one, other).items).toMatchObject([{ pointer: '/id', kind: 'changed' }])
  expect(pointersOf(one, 10)).toEqual(['/id'])
  expect(valueAt(one, '/id/rawJSON')).toBe(undefined)
  expect(writeSetting(readSetting('/id=12345678901234567890')!)).toBe('/id=12345678901234567890')
})
