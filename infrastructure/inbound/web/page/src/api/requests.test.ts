import { expect, test, vi } from 'vitest'

import type { Asked } from '../moment/asked.svelte'
import type { Listing } from '../moment/listing.svelte'
import { act, read, requestOf } from './requests'
import type { Sending } from './sending.svelte'

const RUN = '01890a5d-ac96-774b-bcce-b302099a8057'

test('a path parameter is encoded as one segment', () => {
  const { target } = requestOf('getSession', { key: 'agent:main:sub/{key}?a=b$&' })
  expect(target).toBe('/v1/sessions/agent%3Amain%3Asub%2F%7Bkey%7D%3Fa%3Db%24%26')
})

test('a request has its method, and parameters in their order', () => {
  expect(requestOf('stopRun', { runId: RUN })).toEqual({ method: 'POST', target: `/v1/runs/${RUN}/stop` })
  expect(requestOf('listRuns', { status: ['done', 'failed'], limit: 5, at: 'pos:3', totals: false }).target).toBe(
    '/v1/runs?status=done&status=failed&limit=5&at=pos%3A3&totals=false',
  )
})

test('a parameter without a value is not sent', () => {
  expect(requestOf('listRuns', { label: '', tree: null, q: undefined, status: [] }).target).toBe('/v1/runs')
})

/** Never called: the type checker must refuse each of these. */
export function refused(sending: Sending, asked: typeof Asked, listing: typeof Listing): void {
  // @ts-expect-error an unknown operation
  void read('getRunn', { runId: RUN })
  // @ts-expect-error a missing path parameter
  void read('getRun', { at: 'pos:1' })
  // @ts-expect-error a missing query parameter
  void read('compareRuns', { runId: RUN })
  // @ts-expect-error an unknown query parameter
  void read('getRun', { runId: RUN, att: 'pos:1' })
  // @ts-expect-error a value of another type
  void read('listRuns', { limit: '5' })
  // @ts-expect-error a value that no run has
  void read('listRuns', { status: ['dead'] })
  const parameters = { runId: RUN, att: 'pos:1' }
  // @ts-expect-error an unknown query parameter in a variable
  void read('getRun', parameters)
  // @ts-expect-error an operation that does something is not read
  void read('stopRun', { runId: RUN })
  // @ts-expect-error an operation that reads takes no body
  void act('getRun', { runId: RUN }, {})
  // @ts-expect-error a body of another operation
  void act('sendMessage', { runId: RUN }, { reason: 'enough' })
  // @ts-expect-error an unknown member of a body
  void sending.send('stopRun', { runId: RUN }, { reasons: 'enough' })
  // @ts-expect-error an unknown query parameter, asked for later
  new asked('listRuns', () => ({ label: 'first', limt: 5 }))
  // @ts-expect-error a missing path parameter, asked for later
  new asked('getRun', () => ({}))
  const reading = { rowsOf: () => [], nextOf: () => null }
  // @ts-expect-error a listing that goes on by another parameter
  new listing('listRuns', { ...reading, nextName: 'before' }, () => ({}))
  // @ts-expect-error an unknown query parameter of a listing
  new listing('listRuns', { ...reading, nextName: 'cursor' }, () => ({ label: 'first', limt: 5 }))
}

test('an answer as of the past is kept, but not one of the last seconds, which may still grow', async () => {
  let requests = 0
  const answeredAs = (agoMs: number): void => {
    vi.stubGlobal('fetch', async () => {
      requests += 1
      return Promise.resolve(new Response('{}', { headers: { 'Spawnlog-Recorded-At': new Date(Date.now() - agoMs).toISOString() } }))
    })
  }
  vi.stubGlobal('localStorage', { getItem: () => null })
  for (const [at, agoMs, expected] of [['pos:7', 3_600_000, 1], ['pos:8', 1_000, 2]] as const) {
    requests = 0
    answeredAs(agoMs)
    for (let turn = 0; turn < 2; turn += 1) await read('listRuns', { at }, { isForever: true })
    expect(requests).toBe(expected)
  }
  vi.unstubAllGlobals()
})
