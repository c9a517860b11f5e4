import { expect, test } from 'vitest'

import { csv } from './download'

const ONE = [{ name: 'text', valueOf: (row: string | number | null) => row }]
const cellOf = (value: string | number | null): string => csv([value], ONE).split('\r\n').slice(1, -1).join('\r\n')

test('a row is a line, with a head', () => {
  const rows = [{ id: 'a', cost: 1.5, label: null as string | null }, { id: 'b,"c"\nd', cost: -2, label: 'é' }]
  expect(csv(rows, [{ name: 'id', valueOf: (row) => row.id }, { name: 'cost', valueOf: (row) => row.cost }, { name: 'label', valueOf: (row) => row.label }])).toBe(
    '"id","cost","label"\r\n"a",1.5,\r\n"b,""c""\nd",-2,"é"\r\n',
  )
})

test.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', ' =1', '\u0000=1', '＝1', '＋1', '－1', '＠x', '\n=cmd|calc!A1', "=HYPERLINK(\"http://x\",\"y\")"])(
  'the text %j is no formula', (text) => expect(cellOf(text).startsWith(`"'`)).toBe(true),
)

test.each([['plain', '"plain"'], ['a=b', '"a=b"'], [-5, '-5'], [null, ''], ['', '""']])('%j stays as it is', (value, text) => expect(cellOf(value)).toBe(text))
