import { describe, expect, test } from 'vitest'

import { momentProblem, readAddress, writeAddress } from './address'

describe('an address', () => {
  test('reads as it was written', () => {
    const address = {
      view: 'run' as const, id: 'agent:main:a/b?c', at: 'run:late@refused',
      filters: [['status', 'failed'], ['status', 'timeout'], ['label', 'a b&c']] as [string, string][],
    }
    const url = new URL(writeAddress(address), 'http://x')
    expect(readAddress(url.pathname, url.search)).toEqual(address)
  })

  test.each(['/ui/', '/ui/nothing', '/ui/run/%E0%A4%A', '/', '/ui/constructor'])('that nobody wrote leads to a view: %s', (path) => {
    expect(['runs', 'run']).toContain(readAddress(path, '?at=&x=').view)
    expect(readAddress(path, '?at=&x=').filters).toEqual([])
  })
})

describe('a moment that somebody wrote', () => {
  test.each(['pos:0', 'pos:9', '-5m', '5m', '1.5h', '-2w', '500ms', 'run:late@refused', '2026-03-01T09:00:00Z', '2026-03-01T09:00:00.5+01:00'])('is one: %s', (text) => {
    expect(momentProblem(text, 9)).toBeNull()
  })
  test.each(['pos:10', 'pos:', '5', '-5', '5y', 'run:late', '2026-03-01', '2026-13-41T09:00:00Z', 'yesterday'])('is none: %s', (text) => {
    expect(momentProblem(text, 9)).not.toBeNull()
  })
})
