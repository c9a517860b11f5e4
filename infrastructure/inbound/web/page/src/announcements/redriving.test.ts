import { afterEach, expect, test, vi } from 'vitest'

import type { Following } from './following.svelte'
import { Redriving } from './redriving.svelte'

const FOLLOWING = { send: async (send: () => Promise<unknown>) => void (await send()) } as Following
const item = (runId: string) => ({ runId, webhooks: ['crm'] })
const bodies: unknown[] = []

/** Answer the requests in this order. */
function answer(...answers: [status: number, body: object][]): void {
  bodies.length = 0
  vi.stubGlobal('localStorage', { getItem: () => null })
  vi.stubGlobal('fetch', async (_: string, { body }: { body: string }) => {
    bodies.push(JSON.parse(body))
    const [status, text] = answers[bodies.length - 1]!
    return Promise.resolve(new Response(JSON.stringify(text), { status }))
  })
}

afterEach(() => void vi.unstubAllGlobals())

test('the dialog waits for the first request only, and none of the others sends one twice', async () => {
  answer(
    [200, { redriven: [item('a'), item('b')], refused: [], moreAfter: 40 }],
    [200, { redriven: [item('c')], refused: [{ runId: 'd', code: 'erased', detail: '' }], moreAfter: null }],
  )
  const redriving = new Redriving(FOLLOWING)
  expect(await redriving.start('mended', '4', 90)).toBe(null)
  expect([redriving.isBusy, redriving.sent, redriving.number]).toEqual([true, 2, '4'])
  await vi.waitFor(() => expect(redriving.isBusy).toBe(false))
  expect(bodies).toEqual([{ reason: 'mended', after: 0, until: 90 }, { reason: 'mended', after: 40, until: 90 }])
  expect([redriving.sent, redriving.refused.length]).toEqual([4, 1])
  expect(redriving.said).toBe('1 announcement refused: the texts were erased, so no reason can be recorded.')
})

test('no further request is sent once the user stops', async () => {
  answer([200, { redriven: [item('a')], refused: [], moreAfter: 40 }], [200, { redriven: [item('b')], refused: [], moreAfter: 60 }])
  const redriving = new Redriving(FOLLOWING)
  await redriving.start('mended', '3', 90)
  redriving.stop()
  await vi.waitFor(() => expect(redriving.isBusy).toBe(false))
  expect(bodies.length).toBe(2)
  expect(redriving.said).toBe('Stopped: the others stay parked.')
})

test('a refusal of the first request stays in the dialog', async () => {
  answer([403, { code: 'forbidden', detail: 'This needs scope control.' }])
  const redriving = new Redriving(FOLLOWING)
  expect(await redriving.start('mended', '3', 90)).toBe('This needs scope control.')
  expect(redriving.isBusy).toBe(false)
})
