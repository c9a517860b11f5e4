import { expect, test } from 'vitest'

import { badgesOf } from './badges'

const NOTHING = { running: 0, queued: 0, waiting: 0, parkedAnnouncements: 0, parkedCut: false }

test('badges count what is going on', () => {
  expect(badgesOf(NOTHING, true)).toEqual({})
  expect(badgesOf({ ...NOTHING, running: 1_200, queued: 2, waiting: 3 }, true)).toEqual({
    runs: { text: '999+', meaning: '1200 running now' }, lanes: { text: '5', meaning: '5 queued or waiting now' },
  })
  expect(badgesOf({ ...NOTHING, running: 2, parkedAnnouncements: 500, parkedCut: true }, false)).toEqual({
    runs: { text: '2', meaning: '2 running at this moment' }, announcements: { text: '500+', meaning: '500 or more not delivered', isBad: true },
  })
})
