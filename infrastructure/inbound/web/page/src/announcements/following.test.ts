import { expect, test, vi } from 'vitest'

const asked: string[] = []
let count: (parkedAnnouncements: number, until: number) => void = () => undefined
const event = (position: number, type: string, payload: object) => ({ position, type, runId: 'a', payload: { kind: 'webhook', name: 'crm', ...payload } })
const EVENTS = [event(8, 'EffectRedriven', {}), event(9, 'EffectAttempted', { statusCode: 500, error: { id: 'x' } }), event(10, 'EffectParked', {})]
vi.stubGlobal('location', { pathname: '/ui/', search: '' })
vi.stubGlobal('localStorage', { getItem: () => null })
vi.stubGlobal('fetch', async (target: string) => {
  asked.push(target)
  const body = target.startsWith('/v1/events')
    ? { items: EVENTS, nextAfter: 10, head: 10 }
    : await new Promise((resolve) => { count = (parkedAnnouncements, until) => resolve({ until, live: { parkedAnnouncements } }) })
  return new Response(JSON.stringify(body), { headers: { 'Spawnlog-Position': '10' } })
})
const { atWork } = await import('../moment/at_work.svelte')
const { Following } = await import('./following.svelte')
const summaries = (): number => asked.filter((target) => target.startsWith('/v1/summary')).length

test('what became of announcements is told with the count that has it, and as of its position', async () => {
  const following = new Following()
  const sent = following.send(async () => Promise.resolve([{ runId: 'a', webhooks: ['crm'] }]))
  await vi.waitFor(() => expect(summaries()).toBe(1))
  expect([following.progress, following.isCounted]).toEqual([null, false])
  count(0, 9)
  await sent
  expect([following.progress?.due, atWork.live?.parkedAnnouncements]).toEqual([1, 0])
  expect([following.isCounted, following.isUnderWay]).toEqual([true, true])
  const read = atWork.readNow()
  await vi.waitFor(() => expect(summaries()).toBe(2))
  count(1, 10)
  await read
  expect([following.progress?.failed, atWork.live?.parkedAnnouncements]).toEqual([1, 1])
  expect(following.isUnderWay).toBe(false)
})
