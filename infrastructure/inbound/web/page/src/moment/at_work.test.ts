import { expect, test, vi } from 'vitest'

const targets: string[] = []
vi.stubGlobal('location', { pathname: '/ui/', search: '' })
vi.stubGlobal('localStorage', { getItem: () => null })
vi.stubGlobal('fetch', async (target: string, { method }: { method: string }) => {
  targets.push(target)
  const body = method === 'POST' ? {} : { until: 40, live: { running: 1 } }
  return Promise.resolve(new Response(JSON.stringify(body), { headers: { 'Spawnlog-Position': '40' } }))
})
const { act } = await import('../api/requests')
const { atWork } = await import('./at_work.svelte')

test('an action counts again at once, up to the action at least', async () => {
  await act('stopRun', { runId: 'a' }, { reason: 'enough' })
  await vi.waitFor(() => expect(atWork.live).toEqual({ running: 1 }))
  expect(targets).toEqual(['/v1/runs/a/stop', '/v1/summary?from=pos%3A40&minPosition=40'])
  expect(atWork.position).toBe(40)
})
