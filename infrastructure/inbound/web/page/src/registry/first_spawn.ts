// The command and the request that make the first spawn on a server.

import type { CallerView } from '../api/shapes'
import { quoted } from '../parts/text'

const TASK = 'Say hello'
const LABEL = 'first'

export interface FirstSpawn {
  command: string[]
  /** A line for a POSIX shell that calls curl. */
  request: string
}

/** Return the session for which the caller may spawn: `main`, or the first session of its token. */
export function requesterOf(caller: Pick<CallerView, 'patterns' | 'session'> | null): string {
  const patterns = caller?.patterns ?? ['*']
  const own = caller?.session ?? patterns.find((pattern) => !pattern.includes('*'))
  return patterns.includes('*') || own === undefined ? 'main' : own
}

/** Return the first spawn that the caller may make, as a command and as a request. */
export function firstSpawn(url: string, caller: Pick<CallerView, 'kind' | 'patterns' | 'session'> | null): FirstSpawn {
  const requester = requesterOf(caller)
  const body = JSON.stringify({ requester: { sessionKey: requester }, task: TASK, label: LABEL })
  return {
    command: ['spawnlog', '--url', url, 'spawn', TASK, '--label', LABEL, ...(requester === 'main' ? [] : ['--requester', requester])],
    request: [
      'curl -sS', quoted(`${url}/v1/spawns`),
      ...(caller?.kind === 'anybody' ? [] : ['-H "Authorization: Bearer $SPAWNLOG_TOKEN"']),
      '-H', quoted('Content-Type: application/json'), '-d', quoted(body),
    ].join(' '),
  }
}
