import { expect, test } from 'vitest'

import { badgesOf } from './badges'

const NOTHING = { running: 0, queued: 0, parkedAnnouncements: 0, runsCut: false, parkedCut: false }

test('badges count what is going on', () => {
  expect(badgesOf(NOTHING, true)).toEqual({})
  expect(badgesOf({ ...NOTHING, running: 1_200, queued: 2 }, true)).toEqual({
    runs: { text: '999+', meaning: '1,200 running now' }, lanes: { text: '2', meaning: '2 queued now' },
  })
  expect(badgesOf({ ...NOTHING, running: 2, parkedAnnouncements: 500, parkedCut: true }, false)).toEqual({
    runs: { text: '2', meaning: '2 running at this moment' }, announcements: { text: '500+', meaning: '500 or more parked', isBad: true, filters: [['state', 'parked']] },
  })
})

test('counts that the server ended early say so', () => {
  expect(badgesOf({ ...NOTHING, running: 20, runsCut: true }, true).runs!.meaning).toBe('20 or more running now')
  expect(badgesOf({ ...NOTHING, running: 4_000, queued: 1_000, runsCut: true, parkedCut: true }, true)).toMatchObject({
    runs: { meaning: '4,000 or more running now' }, lanes: { meaning: '1,000 or more queued now' },
  })
  // Only the announcements were counted up to a bound.
  expect(badgesOf({ ...NOTHING, running: 3, parkedAnnouncements: 500, parkedCut: true }, true)).toMatchObject({
    runs: { meaning: '3 running now' }, announcements: { meaning: '500 or more parked' },
  })
})
