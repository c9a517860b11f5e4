import { describe, expect, test } from 'vitest'

import { readAddress, writeAddress } from './address'

describe('an address', () => {
  test('reads as it was written', () => {
    const address = {
      view: 'run' as const, id: 'agent:main:a/b?c', at: 'run:late@refused',
      filters: [['status', 'failed'], ['status', 'timeout'], ['label', 'a b&c']] as [string, string][],
    }
    const url = new URL(writeAddress(address), 'http://x')
    expect(readAddress(url.pathname, url.search)).toEqual(address)
  })

  test.each([null, 'pos:12', '-2h', '2026-11-25T18:00:00.5Z', 'run:a b@ended', '2026-11-25T18:00:00+01:00'])('has the moment %s once', (at) => {
    const url = new URL(writeAddress({ view: 'run', id: 'a b', at, filters: [] }), 'http://x')
    expect(readAddress(url.pathname, url.search)).toEqual({ view: 'run', id: 'a b', at, filters: [] })
  })

  test.each(['/ui/', '/ui/nothing', '/ui/run/%E0%A4%A', '/', '/ui/constructor'])('that is unknown leads to a view: %s', (path) => {
    expect(['overview', 'run']).toContain(readAddress(path, '?at=&x=').view)
    expect(readAddress(path, '?at=&x=').filters).toEqual([])
  })
})
