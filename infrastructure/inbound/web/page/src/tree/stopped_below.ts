// What a stop of a run ends, read when its dialog opens.

import { read, RequestFailed } from '../api/requests'
import type { RunSummary } from '../api/shapes'
import { stopText, STOPS_ALL } from './rows'

const NODES = 1_000

/** Return what a stop of the run ends, with the number of runs below it if they can be read. */
export async function stoppedBelow({ childSessionKey }: Pick<RunSummary, 'childSessionKey'>): Promise<string> {
  if (childSessionKey === null) return STOPS_ALL
  try {
    return stopText((await read('getSessionTree', { key: childSessionKey, limit: NODES })).body)
  } catch (error) {
    if (!(error instanceof RequestFailed)) throw error
    return STOPS_ALL
  }
}
